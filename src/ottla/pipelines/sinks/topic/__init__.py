"""Topics."""

from ottla.pipelines.sinks.topic.spec import TopicSpec
from ottla.pipelines.sinks.topic.to_topic import to_topic

__all__ = ["TopicSpec", "to_topic"]
