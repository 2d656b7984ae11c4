"""Topics."""

from ottla.pipelines.sinks.topic.to_topic import TopicSpec, to_topic

__all__ = ["TopicSpec", "to_topic"]
