"""`[sink]` with the field `topic`: a topic to write instead of a table. Pure."""

from __future__ import annotations

from typing import Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.fields import Fields
from ottla.pipelines.kafka.settings import KafkaSettings, read_settings, split_producer
from ottla.pipelines.kafka.topic_name import wrong_name
from ottla.pipelines.spec.pipeline import SinkSpec, TopicSinkSpec

_OF_TABLES: Final = (
    *("target", "partition_by", "schema_changes", "compact_after"),
    *("keys", "order_by", "history", "deletes", "max_ahead", "deletion_vectors"),
)


def read_topic_sink(fields: Fields, source: KafkaSettings | None) -> SinkSpec:
    """Return the sink; `source` is how the pipeline reaches the topic that it reads.

    Without `bootstrap_servers` both topics are on one cluster, and `[source.kafka]` holds for both.
    """
    topic = fields.text("topic", "late-flights", required=True) or ""
    if topic and (wrong := wrong_name(topic)):
        fields.problem("topic", wrong)
    for name in _OF_TABLES:
        if fields.value(name) is not None:
            fields.problem(name, "is for tables, and this sink writes a topic: leave one out")
    kafka, producer = _kafka(fields, source)
    spec = TopicSinkSpec(
        topic,
        kafka,
        producer,
        fields.text("key", "carrier"),
        fields.text("value", "struct(flight, delay)"),
        fields.text("headers", "headers"),
    )
    fields.end()
    return SinkSpec(target=f"topic {topic}", topic=spec)


def _kafka(
    fields: Fields, source: KafkaSettings | None
) -> tuple[KafkaSettings, tuple[tuple[str, str], ...]]:
    servers = fields.value("bootstrap_servers")
    given, producer = split_producer(dict(fields.settings("kafka")))
    if isinstance(servers, list):
        servers = ",".join(map(str, servers))
    if servers is None:
        servers = source.bootstrap_servers if source else ""
        given = {**dict(source.settings if source else ()), **given}
    if not isinstance(servers, str):
        fields.problem("bootstrap_servers", "write 'host:port,host:port' or a list of these")
        servers = ""
    if not servers:
        return KafkaSettings(""), ()  # reported here or for the source
    try:
        return read_settings(servers, given), tuple(producer.items())
    except PipelineError as error:
        message = str(error)
        about = "kafka" if message.startswith("kafka") else "bootstrap_servers"
        fields.problem(about, message)
        return KafkaSettings(""), ()
