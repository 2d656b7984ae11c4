"""The sinks that there are: a new one is added here, and nothing else asks for its kind."""

from typing import Final

from ottla.pipelines.sinks.delta.spec import DeltaSpec
from ottla.pipelines.sinks.files.spec import FilesSpec
from ottla.pipelines.sinks.postgresql.spec import DatabaseSpec
from ottla.pipelines.sinks.topic.spec import TopicSpec
from ottla.pipelines.spec.sink import SinkSpec

SINKS: Final[tuple[type[SinkSpec], ...]] = (DeltaSpec, FilesSpec, DatabaseSpec, TopicSpec)
"""In the order of the reference; a file that marks none has the first."""
