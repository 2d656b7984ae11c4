"""`[sink]` with `topic`: a topic to write instead of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.known import Known
from ottla.pipelines.kafka.settings import KafkaSettings, split_producer
from ottla.pipelines.kafka.topic_name import wrong_name
from ottla.pipelines.sinks.topic.columns import RecordColumns
from ottla.pipelines.sinks.topic.sink import TopicSink, TopicTarget
from ottla.pipelines.sinks.topic.to_topic import topic_sink
from ottla.pipelines.spec.option import Option, option
from ottla.pipelines.spec.servers import read_servers
from ottla.pipelines.spec.sink import SinkSpec

if TYPE_CHECKING:
    from ottla.pipelines.run.specification import Specification
    from ottla.pipelines.spec.fields import Fields
    from ottla.pipelines.spec.sink import Reading
    from ottla.pipelines.target.port import Sink


@dataclass(frozen=True, slots=True)
class TopicSpec(SinkSpec):
    """A topic, with `to_topic()`'s arguments."""

    title: ClassVar[str] = "`[sink]` with `topic`: a topic"
    marked_by: ClassVar[str] = "topic"
    besides: ClassVar[tuple[Option, ...]] = (
        Option(
            "bootstrap_servers",
            "the brokers; by default those of `[source]`",
            takes="as in `[source]`",
        ),
    )
    keeps_rejects: ClassVar[bool] = False
    failures: ClassVar[tuple[Known, ...]] = TopicSink.failures
    others: ClassVar[str] = "is for tables, and this sink writes a topic: leave one out"

    topic: str = option("the topic to write", example="late-flights", required=True)
    kafka: KafkaSettings = option(
        "the settings of its cluster and its producer; by default those of `[source.kafka]`",
        "other",
        takes="table",
        secret=True,
    )
    producer: tuple[tuple[str, str], ...] = ()
    key: str | None = option("the key, as SQL", default=None, example="carrier")
    value: str | None = option("the value, as SQL", default=None, example="struct(flight, delay)")
    headers: str | None = option("the headers, as SQL", default=None, example="headers")

    @property
    def target(self) -> str:
        """The topic in a sentence."""
        return f"topic {self.topic}"

    @property
    def written_topic(self) -> tuple[KafkaSettings, str]:
        """The topic and how its cluster is reached."""
        return self.kafka, self.topic

    @classmethod
    def read(cls, fields: Fields, given: dict[str, Any], about: Reading) -> Self:
        """Return what a file gives.

        Without `bootstrap_servers` both topics are on one cluster, and `[source.kafka]` holds for
        both.
        """
        if given["topic"] and (wrong := wrong_name(given["topic"])):
            fields.problem("topic", wrong)
        try:
            settings, producer = split_producer(dict(fields.settings("kafka")))
        except PipelineError as error:
            fields.problem("kafka", str(error))
            settings, producer = {}, {}
        kafka = read_servers(fields, settings, about.source) or KafkaSettings("")
        return cls(**given, kafka=kafka, producer=tuple(producer.items()))

    def sink(self, asked: Specification) -> Sink:
        """Return the topic for the rows of a frame. Raises PipelineError."""
        columns = RecordColumns(self.key, self.value, self.headers)
        return topic_sink(asked, TopicTarget(self.topic, self.kafka, columns, dict(self.producer)))
