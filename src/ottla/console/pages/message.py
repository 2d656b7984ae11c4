"""One record, whole: key, headers, value, and sending it again."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import BadFormError, NotFoundError
from ottla.console.pages.existing_topic import existing_topic
from ottla.console.schemas import Decoded
from ottla.console.seen_record import UNREADABLE
from ottla.console.visit import Visit
from ottla.messaging.jsonlines import Outgoing
from ottla.messaging.librdkafka import quiet
from ottla.messaging.producer import TopicProducer
from ottla.messaging.reader import ignore
from ottla.messaging.record_headers import headers_of, known_headers
from ottla.messaging.record_scan import one_record
from ottla.messaging.rendering import render_json
from ottla.messaging.shown_bytes import FORMS, escaped, shown_whole
from ottla.registry.decoder import KEY, VALUE
from ottla.wording.errors import ReportedError

MAX_SHOWN_BYTES: Final = 256 << 10
MAX_HEADER_BYTES: Final = 4096
MAX_HEADERS: Final = 200
SEND_WITHIN_S: Final = 8.0
MAX_RECORD_BYTES: Final = 1_000_000_000
PARTS: Final = ("value", "key", "json")
CREATE_TIME: Final = 1


class NotSentError(ReportedError):
    """The cluster did not take the record."""


def message(visit: Visit) -> Response:
    """The page at `/topics/TOPIC/messages/PARTITION/OFFSET`."""
    topic = existing_topic(visit)
    record = found_record(visit)
    form = visit.text("form") if visit.text("form") in FORMS else "auto"
    kind, at_ms = record.timestamp()
    headers = known_headers(record)
    if headers is None:
        headers = UNREADABLE
    key, value = (
        decoded(visit, data, topic.name, field, form)
        for data, field in ((record.key(), KEY), (record.value(), VALUE))
    )
    return visit.page(
        "message.html",
        topic=topic,
        tab="Messages",
        partition=record.partition(),
        offset=record.offset(),
        at_ms=at_ms if kind else None,
        at_kind="set by the producer" if kind == CREATE_TIME else "set by the broker",
        form=form,
        forms=FORMS,
        key=shown_whole(key.data, MAX_SHOWN_BYTES, form),
        value=shown_whole(value.data, MAX_SHOWN_BYTES, form),
        key_schema=key,
        value_schema=value,
        headers=[
            (escaped(name, frozenset()), shown_whole(data, MAX_HEADER_BYTES, form))
            for name, data in headers[:MAX_HEADERS]
        ],
        more_headers=max(0, len(headers) - MAX_HEADERS),
    )


def decoded(visit: Visit, data: bytes | None, topic: str, field: str, form: str) -> Decoded:
    """A key or value as JSON, if the registry has its schema and no other form is wanted."""
    if visit.console.schemas is None or form not in ("auto", "json"):
        return Decoded(data)
    return visit.console.schemas.read(data, topic, field)


def found_record(visit: Visit) -> Any:
    """Raises NotFoundError."""
    key = TopicPartition(str(visit.path["topic"]), int(visit.path["partition"]))
    offset = int(visit.path["offset"])
    topic = existing_topic(visit)
    record = None
    if key.partition in topic.partitions and offset < 2**63 - 1:
        record = one_record(visit.access.settings, key, offset)
    if record is None:
        raise NotFoundError(
            f"{key} has no record at offset {offset}.",
            "It was removed by retention or compaction, is the end of a transaction, or was never "
            "written.",
        )
    return record


def whole(visit: Visit) -> Response:
    """A part of the record as a file, byte for byte: its value, its key, or all as a JSON line."""
    part = visit.text("part") or "value"
    if part not in PARTS:
        raise BadFormError(f"part must be one of {', '.join(PARTS)}, not {part!r}.")
    record = found_record(visit)
    data = {"value": record.value, "key": record.key, "json": lambda: render_json(record)}[part]()
    name = f"{record.topic()}-{record.partition()}-{record.offset()}-{part}"
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(
        data or b"",
        media_type="application/octet-stream",
        headers={"content-disposition": disposition},
    )


def send_again(visit: Visit) -> Response:
    """The same bytes to the same or another topic."""
    target = visit.text("target")
    if not target:
        raise BadFormError("name the topic that gets the record.")
    record = found_record(visit)
    visit_target = visit.client.metadata([target]).topics.get(target)
    if visit_target is None or not visit_target.partitions:
        raise NotFoundError(f"there is no topic {target!r}.", "Nothing was sent.")
    partition = record.partition() if visit.text("same_partition") else None
    if partition is not None and partition not in visit_target.partitions:
        raise BadFormError(f"topic {target!r} has no partition {partition}.", "Nothing was sent.")
    outgoing = Outgoing(record.key(), record.value(), headers_of(record), partition, None)
    return sent(visit, target, outgoing)


def sent(visit: Visit, topic: str, outgoing: Outgoing) -> Response:
    """Sends the record with acks=all, and shows it where it is. Raises NotSentError."""
    producer = producer_to(visit, topic)
    producer.send(outgoing, 1)
    producer.flush()
    if not producer.delivered:
        reasons = ", ".join(each.rstrip(".") for each in producer.errors) or "no response in time"
        raise NotSentError(f"the record was not sent: {reasons}.")
    ((number, count),) = producer.partitions.items()
    return visit.go(
        f"/topics/{topic}/messages/{number}/{count.last_offset}",
        f"Sent to {topic}, partition {number}, offset {count.last_offset}.",
    )


def producer_to(visit: Visit, topic: str) -> TopicProducer:
    """With acks=all, which gives up soon enough for a page."""
    settings = {
        "acks": "all",
        "partitioner": "murmur2_random",
        "message.timeout.ms": int(SEND_WITHIN_S * 1000),
        "message.max.bytes": MAX_RECORD_BYTES,
        **quiet(visit.access.settings),
    }
    return TopicProducer(topic, settings, SEND_WITHIN_S, ignore)
