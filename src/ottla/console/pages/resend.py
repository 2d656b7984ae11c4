"""Sending all records that match again: first they are counted, which sends nothing; what is sent
then are those that were counted, and none that arrived since.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from starlette.responses import Response

from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import BadFormError, BusyError, ConflictError, NotFoundError
from ottla.console.pages.existing_topic import existing_topic
from ottla.console.pages.message import producer_to
from ottla.console.record_query import record_query, spans_of, written_rest
from ottla.console.schemas import NotDecodedError
from ottla.console.templates import address
from ottla.console.visit import Visit
from ottla.messaging.jsonlines import Outgoing
from ottla.messaging.producer import TopicProducer
from ottla.messaging.record_headers import headers_of, known_headers
from ottla.messaging.record_scan import RecordScan, Span
from ottla.wording.plural import plural

WITHIN_S: Final = 20.0
STEP_S: Final = 0.5
MAX_RECORDS: Final = 100_000
MAX_BYTES: Final = 256 << 20
"""Of keys, values and headers: they are all read before the first is sent."""
SENT_AT_ONCE_BYTES: Final = 8 << 20
"""A record has the time of one page to be delivered, so few wait behind each other."""
RECORD_BYTES: Final = 100
"""What a record takes besides its key, value and headers."""
NARROW: Final = "Nothing was sent. Choose a partition, a time to begin with, or a narrower filter."


def counted(visit: Visit) -> Response:
    """How many records match, with the form that sends them."""
    topic, query = existing_topic(visit), record_query(visit)
    spans = spans_of(visit.client, topic, query)
    pinned = written_rest(spans)
    if pinned is None:
        raise BadFormError(f"{topic.name} has too many partitions to do this at once.", NARROW)
    with turn(visit):
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
    outgoing: deque[Outgoing] = deque()

    def keep(record: Any) -> None:
        number = record.partition() if keeps else None
        outgoing.append(Outgoing(record.key(), record.value(), headers_of(record), number, None))

    with turn(visit):
        looked_through(visit, spans, keep)
        if len(outgoing) != expected:
            raise ConflictError(
                f"{plural(expected, 'record')} were counted, and {len(outgoing):,} are there now: "
                "retention or compaction has removed some.",
                "Nothing was sent. Count again.",
            )
        producer = producer_to(visit, target)
        send_all(producer, outgoing)
    said = f"Sent {plural(producer.delivered, 'record')} of {topic.name} to {target}."
    if producer.undelivered:
        reasons = ", ".join(each.rstrip(".") for each in producer.errors) or "no response in time"
        said = f"{said} {producer.undelivered:,} were not delivered: {reasons}."
        if outgoing:
            said = f"{said} The other {plural(len(outgoing), 'record')} were not sent then."
    return visit.go(f"/topics/{target}/messages", said)


@contextmanager
def turn(visit: Visit) -> Iterator[None]:
    """Raises BusyError if others do the same."""
    if not visit.console.resends.acquire(blocking=False):
        raise BusyError("others send records again.", "Nothing was sent. Wait until they are done.")
    try:
        yield
    finally:
        visit.console.resends.release()


def send_all(producer: TopicProducer, outgoing: deque[Outgoing]) -> None:
    """Sends some, waits until they are delivered, and goes on; until some are not: what follows is
    left in `outgoing`.
    """
    number = 0
    while outgoing and not producer.undelivered:
        size = 0
        while outgoing and size < SENT_AT_ONCE_BYTES:
            each = outgoing.popleft()
            number += 1
            size += size_of(each.key, each.value, each.headers)
            producer.send(each, number)
        producer.flush()


def size_of(
    key: bytes | None, value: bytes | None, headers: Iterable[tuple[str | bytes, bytes | None]]
) -> int:
    """Of what is kept of a record, in bytes."""
    parts = (key, value, *(part for each in headers for part in each))
    return RECORD_BYTES + sum(len(part) for part in parts if part is not None)


def looked_through(
    visit: Visit, spans: dict[TopicPartition, Span], keep: Callable[[Any], None]
) -> int:
    """Calls `keep` for each record that matches; how many there are. Raises BadFormError if there
    are too many, or looking at all takes too long, and NotDecodedError.
    """
    if not any(begin < end for begin, end in spans.values()):
        return 0
    count = size = 0

    def seen(record: Any) -> None:
        nonlocal size
        size += size_of(record.key(), record.value(), known_headers(record) or ())
        if size <= MAX_BYTES:
            keep(record)

    matches = record_query(visit).matches(visit.console.schemas, surely=True)
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
    except NotDecodedError as error:
        raise NotDecodedError(error.message, f"Nothing was sent. {error.hint}") from None
    finally:
        scan.close()
    return count
