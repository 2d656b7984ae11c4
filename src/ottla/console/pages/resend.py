"""Sending all records that match again: first they are counted, which sends nothing; what is sent
then are those that were counted, and none that arrived since.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from starlette.responses import Response

from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import BadFormError, ConflictError, NotFoundError
from ottla.console.pages.existing_topic import existing_topic
from ottla.console.pages.message import producer_to
from ottla.console.record_query import record_query, spans_of, written_rest
from ottla.console.templates import address
from ottla.console.visit import Visit
from ottla.messaging.jsonlines import Outgoing
from ottla.messaging.record_headers import headers_of
from ottla.messaging.record_scan import RecordScan, Span
from ottla.wording.plural import plural

WITHIN_S: Final = 20.0
STEP_S: Final = 0.5
MAX_RECORDS: Final = 100_000
MAX_BYTES: Final = 256 << 20
"""They are all read before the first is sent."""
NARROW: Final = "Nothing was sent. Choose a partition, a time to begin with, or a narrower filter."


def counted(visit: Visit) -> Response:
    """How many records match, with the form that sends them."""
    topic, query = existing_topic(visit), record_query(visit)
    spans = spans_of(visit.client, topic, query)
    pinned = written_rest(spans)
    if pinned is None:
        raise BadFormError(f"{topic.name} has too many partitions to do this at once.", NARROW)
    count = looked_through(visit, spans, lambda _: None)
    return visit.page(
        "resend.html",
        topic=topic,
        tab="Messages",
        query=query,
        count=count,
        action=address(f"/topics/{topic.name}/send-again", **query.values(), rest=pinned),
        total=sum(end - begin for begin, end in spans.values()),
    )


def resent(visit: Visit) -> Response:
    """Sends them. Raises ConflictError if there are not as many as were counted."""
    topic, target = existing_topic(visit), visit.text("target")
    found = visit.client.metadata([target]).topics.get(target) if target else None
    if found is None or not found.partitions:
        raise NotFoundError(f"there is no topic {target!r}.", "Nothing was sent.")
    expected = visit.number("count", 1, MAX_RECORDS)
    if expected is None or not visit.query.get("rest"):
        raise BadFormError("count the records first.", "Nothing was sent.")
    spans = spans_of(visit.client, topic, record_query(visit))
    keeps = bool(visit.text("same_partition"))
    missing = {key.partition for key in spans} - set(found.partitions)
    if keeps and missing:
        raise BadFormError(
            f"topic {target!r} has no partition {min(missing)}.", "Nothing was sent."
        )
    outgoing: list[Outgoing] = []

    def keep(record: Any) -> None:
        number = record.partition() if keeps else None
        outgoing.append(Outgoing(record.key(), record.value(), headers_of(record), number, None))

    looked_through(visit, spans, keep)
    if len(outgoing) != expected:
        raise ConflictError(
            f"{plural(expected, 'record')} were counted, and {len(outgoing):,} are there now: "
            "retention or compaction has removed some.",
            "Nothing was sent. Count again.",
        )
    producer = producer_to(visit, target)
    for number, each in enumerate(outgoing, 1):
        producer.send(each, number)
    producer.flush()
    said = f"Sent {plural(producer.delivered, 'record')} of {topic.name} to {target}."
    if producer.undelivered:
        reasons = ", ".join(each.rstrip(".") for each in producer.errors) or "no response in time"
        said = f"{said} {producer.undelivered:,} were not delivered: {reasons}."
    return visit.go(f"/topics/{target}/messages", said)


def looked_through(
    visit: Visit, spans: dict[TopicPartition, Span], keep: Callable[[Any], None]
) -> int:
    """Calls `keep` for each record that matches; how many there are. Raises BadFormError if there
    are too many, or looking at all takes too long.
    """
    if not any(begin < end for begin, end in spans.values()):
        return 0
    count = size = 0

    def seen(record: Any) -> None:
        nonlocal size
        size += len(record.value() or b"") + len(record.key() or b"")
        if size <= MAX_BYTES:
            keep(record)

    matches = record_query(visit).matches(visit.console.schemas)
    scan = RecordScan(visit.access.settings, spans, seen, matches)
    until_s = time.monotonic() + WITHIN_S
    try:
        while not scan.is_done:
            count += len(scan.step(STEP_S))
            if count > MAX_RECORDS or size > MAX_BYTES:
                raise BadFormError(
                    f"at most {MAX_RECORDS:,} records of {MAX_BYTES >> 20} MiB are sent at once, "
                    "and more match.",
                    NARROW,
                )
            if time.monotonic() > until_s:
                share = 100 * scan.passed_offsets // max(1, scan.total_offsets)
                raise BadFormError(
                    f"it takes too long: only {share} % of the records were looked at.", NARROW
                )
    finally:
        scan.close()
    return count
