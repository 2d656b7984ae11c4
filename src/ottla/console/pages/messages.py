"""The records of a topic: newest first or from a position, filtered.

A page looks for at most `WITHIN_S`. It says how much it has looked at, and its last line goes on
with the rest; `record_streams` does the same without a limit, live.
"""

from __future__ import annotations

import time
from typing import Final

from starlette.responses import Response

from ottla.client.metadata import Topic
from ottla.client.topic_partition import TopicPartition
from ottla.console.opened_scan import opened_scan
from ottla.console.pages.existing_topic import existing_topic
from ottla.console.record_query import RecordQuery, record_query, spans_of, written_rest
from ottla.console.schemas import Unasked
from ottla.console.seen_record import SeenRecord
from ottla.console.templates import address
from ottla.console.visit import Visit
from ottla.messaging.key_scan import KeyScan
from ottla.messaging.record_scan import RecordScan, Span

ROWS: Final = 50
WITHIN_S: Final = 2.0
STEP_S: Final = 0.5
ENOUGH_S: Final = 0.7


def messages(visit: Visit) -> Response:
    """The page at `/topics/TOPIC/messages`."""
    topic = existing_topic(visit)
    query = record_query(visit)
    kept = visit.access.rests.find(topic.name, query.rest)
    spans = spans_of(visit.client, topic, query, kept)
    unasked = Unasked()
    rows, rest, looked_at, unread = looked_up(visit, topic, spans, query, unasked)
    path = f"/topics/{topic.name}/messages"
    continued = written_rest(rest)
    if continued is None:
        continued = visit.access.rests.keep(rest)
    values = query.values()
    return visit.page(
        "messages.html",
        topic=topic,
        tab="Messages",
        query=query,
        is_key_stored=query.has_stored_key(visit.console.schemas),
        rows=rows,
        looked_at=looked_at,
        unasked=unasked,
        unread=unread,
        within_s=WITHIN_S,
        left=sum(end - begin for begin, end in rest.values()),
        total=sum(end - begin for begin, end in spans.values()),
        next=address(path, **values, rest=continued) if rest else None,
        again=address(path, **values),
        tail=address(f"/topics/{topic.name}/tail", **values),
        search=address(f"/topics/{topic.name}/search", **values),
        send_again=address(f"/topics/{topic.name}/send-again", **values),
        export=address(f"/topics/{topic.name}/export", **values),
    )


def looked_up(
    visit: Visit,
    topic: Topic,
    spans: dict[TopicPartition, Span],
    query: RecordQuery,
    unasked: Unasked,
) -> tuple[list[SeenRecord], dict[TopicPartition, Span], int, int]:
    """The rows of one page, what was not looked at, at how many records it looked, and how many
    partitions have none of them although newer ones may be there. Raises PatternError,
    LibrdkafkaError and RefusedError.
    """
    schemas = visit.console.schemas
    matches = query.matches(schemas, unasked=unasked)
    if not any(begin < end for begin, end in spans.values()):
        return [], {}, 0, 0
    scan = opened_scan(visit, topic, query, spans, query.seen(schemas), matches)
    rows: list[SeenRecord] = []
    try:
        began_s = time.monotonic()
        while not scan.is_done and len(rows) < ROWS:
            # Records that have a key are few: who has some does not wait for the rest.
            has_key = isinstance(scan, KeyScan)
            left_s = began_s + (ENOUGH_S if rows and has_key else WITHIN_S) - time.monotonic()
            if left_s <= 0:
                break
            # The newest records of all partitions are known once each was read.
            rows += scan.step(STEP_S if has_key else left_s, ROWS - len(rows))
    finally:
        scan.close()
    if query.newest_first:
        rows.sort(key=lambda row: (row.at_ms or -1, row.offset), reverse=True)
    shown, rest = cut(rows, scan.rest, spans, newest_first=query.newest_first)
    unread = scan.unread if isinstance(scan, RecordScan) and query.newest_first else 0
    return shown, rest, scan.looked_at, unread


def cut(
    rows: list[SeenRecord],
    rest: dict[TopicPartition, Span],
    spans: dict[TopicPartition, Span],
    *,
    newest_first: bool,
) -> tuple[list[SeenRecord], dict[TopicPartition, Span]]:
    """The rows of one page, and the rest with those that are on the next."""
    shown, more = rows[:ROWS], rows[ROWS:]
    (topic,) = {key.topic for key in spans}
    for row in more:
        key = TopicPartition(topic, row.partition)
        if newest_first:
            begin, end = rest.get(key, (spans[key][0], 0))
            rest[key] = begin, max(end, row.offset + 1)
        else:
            begin, end = rest.get(key, (spans[key][1], spans[key][1]))
            rest[key] = min(begin, row.offset), end
    return shown, rest
