"""One partition: its segments, how its records are spread over time, and which of them retention
removes when.

Ottla's brokers list segments. No request of Kafka's does; there the log is cut into equal spans of
time by the offsets that the leader has at their bounds (ListOffsets). Retention removes whole
segments, those that are written to last of all: of a span nothing is removed before the time that
is said.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from starlette.responses import Response

from ottla.client.admin.configs import settings_of
from ottla.client.admin.log_dirs import log_dirs
from ottla.client.admin.offsets import EARLIEST, LATEST, known_offsets, offsets_at
from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.admin.segments import Segment, Segments, segments_of
from ottla.client.admin.stored_replicas import replicas_of
from ottla.client.client import Client
from ottla.client.errors import ClientError, RefusedError
from ottla.client.permission_hint import permission_hint
from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import NotFoundError
from ottla.console.pages.existing_topic import existing_topic
from ottla.console.visit import Visit
from ottla.messaging.unread_times import UnreadTimes

SPANS: Final = 24
WIDTH: Final = 480
MIN_WIDTH: Final = 3
MAX_DRAWN: Final = 100
MAX_SEGMENT_ROWS: Final = 200
OTHERS_FRESH_S: Final = 60.0
MIN_SPAN_MS: Final = 1000
FRESH_S: Final = 5.0
RETENTION: Final = ("retention.ms", "retention.bytes", "cleanup.policy", "segment.ms")


class TimeSpan(NamedTuple):
    """Offsets from `begin` to before `end`, of records from `from_ms` on. `removed_ms`: when
    retention by time may remove the first of them; None: it does not. `share`: of the largest span.
    """

    from_ms: int
    until_ms: int
    begin: int
    end: int
    removed_ms: int | None
    share: float

    @property
    def offsets(self) -> int:
        return self.end - self.begin


def partition(visit: Visit) -> Response:
    """The page at `/topics/TOPIC/partitions/PARTITION`."""
    topic, number = existing_topic(visit), int(visit.path["partition"])
    found = topic.partitions.get(number)
    if found is None:
        raise NotFoundError(f"topic {topic.name!r} has no partition {number}.")
    client, key = visit.client, TopicPartition(topic.name, number)
    (starts, ends), why = known_offsets(
        client, [key] if found.leader >= 0 else [], EARLIEST, LATEST
    )
    settings, why_no_settings = known_settings(visit, topic.name)
    folders, _ = log_dirs(client, partitions={topic.name: [number]})
    sizes = {
        folder.broker: each.size_bytes
        for folder, each in replicas_of(folders)
        if not each.is_future
    }
    spans: list[TimeSpan] = []
    segments = known_segments(visit, key) if key in ends else None
    if segments is None and key in ends and starts[key] < ends[key]:
        spans = visit.access.kept(
            f"spans {key}",
            FRESH_S,
            lambda: asked_spans(visit, key, ends[key], retention_ms_of(settings)),
        )
    return visit.page(
        "partition.html",
        topic=topic,
        tab="Partitions",
        number=number,
        partition=found,
        start=starts.get(key),
        end=ends.get(key),
        why=why.get(key) or ("it has no leader" if found.leader < 0 else None),
        settings=settings,
        why_no_settings=why_no_settings,
        size=sizes.get(found.leader),
        sizes=sizes,
        spans=spans,
        segments=segments,
        drawn=drawn_segments(segments.listed) if segments is not None else [],
        now_ms=int(time.time() * 1000),
        most_rows=MAX_SEGMENT_ROWS,
    )


def known_segments(visit: Visit, key: TopicPartition) -> Segments | None:
    """None on other brokers than Ottla's, which are asked seldom: they close the connection, and
    write an error into their logs; or if the leader does not say it now.
    """
    access, client = visit.access, visit.client
    if not access.kept("segments", OTHERS_FRESH_S, lambda: are_listed(client, key)):
        return None
    try:
        return access.kept(f"segments {key}", FRESH_S, lambda: segments_of(client, key))
    except ClientError:
        return None


def are_listed(client: Client, key: TopicPartition) -> bool:
    """Whether the brokers list segments."""
    try:
        segments_of(client, key)
    except NotOttlaError:
        return False
    except ClientError:
        return True
    return True


class Drawn(NamedTuple):
    """A segment in the picture: where it begins and how wide it is, of WIDTH."""

    segment: Segment
    x: float
    width: float


def drawn_segments(segments: Sequence[Segment]) -> list[Drawn]:
    """The newest MAX_DRAWN, as wide as they are large, each wide enough to be seen. Pure."""
    chosen = segments[-MAX_DRAWN:]
    total = sum(each.size_bytes for each in chosen) or 1
    room = WIDTH - MIN_WIDTH * len(chosen)
    found, x = [], 0.0
    for each in chosen:
        width = MIN_WIDTH + room * each.size_bytes / total
        found.append(Drawn(each, x, width))
        x += width
    return found


def known_settings(visit: Visit, topic: str) -> tuple[dict[str, str] | None, str]:
    """Those of retention; or None, and why this visitor does not see them."""
    try:
        known = settings_of(visit.client, "topic", [topic], RETENTION)[topic]
    except RefusedError as error:
        hint = error.hint or permission_hint(visit.access.principal, error.lacking) or ""
        return None, f"{error.message} {hint}".strip()
    return dict.fromkeys(RETENTION, "") | {each.name: each.value or "" for each in known}, ""


def retention_ms_of(settings: dict[str, str] | None) -> int | None:
    """None if records are not removed by their age, or that is not known."""
    if settings is None:
        return None
    text = settings.get("retention.ms", "")
    removes = "delete" in settings.get("cleanup.policy", "delete")
    return int(text) if removes and text.isdecimal() else None


def asked_spans(
    visit: Visit, key: TopicPartition, end: int, retention_ms: int | None
) -> list[TimeSpan]:
    """None where the first record has no time."""
    (starts,), _ = known_offsets(visit.client, [key], EARLIEST)
    times = UnreadTimes(visit.access.settings)
    try:
        first_ms = times.read({key: starts[key]}).get(key) if key in starts else None
    finally:
        times.close()
    if first_ms is None:
        return []
    bounds = bounds_of(first_ms, int(time.time() * 1000))
    offsets = [starts[key]]
    for at_ms in bounds[1:-1]:
        offsets.append(offsets_at(visit.client, [key], at_ms)[key])
    return spans_between(bounds, [*offsets, end], retention_ms)


def bounds_of(first_ms: int, now_ms: int) -> list[int]:
    """The bounds of at most SPANS equal spans from the first record until now. Pure."""
    length_ms = max(MIN_SPAN_MS, now_ms - first_ms)
    count = max(1, min(SPANS, length_ms // MIN_SPAN_MS))
    return [first_ms + length_ms * each // count for each in range(count + 1)]


def spans_between(
    bounds: Sequence[int], offsets: Sequence[int], retention_ms: int | None
) -> list[TimeSpan]:
    """One for each two bounds, with the offsets at them. Records may be out of the order of their
    times: an offset that is less than the one before counts as that one. Pure.
    """
    ordered, highest = [], offsets[0]
    for each in offsets:
        highest = max(highest, min(each, offsets[-1]))
        ordered.append(highest)
    counts = [after - before for before, after in itertools.pairwise(ordered)]
    most = max(counts, default=0) or 1
    return [
        TimeSpan(
            bounds[at],
            bounds[at + 1],
            ordered[at],
            ordered[at + 1],
            None if retention_ms is None else bounds[at] + retention_ms,
            count / most,
        )
        for at, count in enumerate(counts)
    ]
