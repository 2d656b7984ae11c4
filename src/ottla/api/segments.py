"""Segments: those of one partition, and when retention removes each. Ottla's own request, key
20006, not advertised and not in Kafka.

The request has header v1, then JSON; the response has header v0, then JSON. An Apache Kafka broker
closes the connection.

    request   {"segments": 1, "topic": "flights", "partition": 2}
    response  {"segments": 1, "broker": 1, "start_offset": 7, "end_offset": 90, "count": 2,
               "listed": [{"base_offset", "next_offset", "size_bytes", "largest_ms", "removed_ms",
                           "missing_bytes", "is_active"}, ...]}, or
              {"segments": 1, "error": {"code", "message"}}

Any replica answers for itself. The fields of a segment are those of `ottla.log.segment_plan`,
oldest first; of a log with more than MAX_LISTED the oldest are listed and the active one.

Codes: bad_request, unknown_partition, storage_error, not_authorized.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.journey import MAX_PARTITION, is_count
from ottla.log.errors import CorruptIndexError, RebuildingError, storage_error
from ottla.log.log import Log
from ottla.log.segment_plan import SegmentFacts, planned_segments
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.protocol.versions import SEGMENTS
from ottla.runtime.slices import Slices

KEY: Final = SEGMENTS
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.TOPIC),)
VERSION: Final = 1
MAX_LISTED: Final = 1000
SLICE: Final = 50
"""The time of a segment may have to be read from its files."""


async def handle_json(request: dict[str, Any], context: Context) -> dict[str, Any]:
    """The segments, or why there is no answer."""
    if request.get("segments") != VERSION:
        return refuse(f"this broker supports version {VERSION} of the request")
    topic, number = request.get("topic"), request.get("partition")
    if not isinstance(topic, str) or not topic:
        return refuse("`topic` must be a name")
    if not is_count(number, MAX_PARTITION):
        return refuse("`partition` must be an integer of 0 or more")
    try:
        log = context.broker.partitions.find(topic, int(number or 0)).log
    except ApiError:
        return refuse(f"this broker has no partition {number} of {topic!r}", "unknown_partition")
    try:
        facts = await facts_of(log)
    except ApiError as error:
        return refuse(error.message or error.code.name, "storage_error")
    planned = planned_segments(facts, log.config)
    listed = planned if len(planned) <= MAX_LISTED else [*planned[: MAX_LISTED - 1], planned[-1]]
    return {
        "segments": VERSION,
        "broker": context.broker.config.id,
        "start_offset": log.start_offset,
        "end_offset": log.end_offset,
        "count": len(planned),
        "listed": [each._asdict() for each in listed],
    }


async def facts_of(log: Log) -> list[SegmentFacts]:
    """Raises ApiError KAFKA_STORAGE_ERROR."""
    found: list[SegmentFacts] = []
    slices = Slices(SLICE)
    segments = list(log.segments)
    for number, segment in enumerate(segments):
        await slices.count()
        last = number + 1 == len(segments)
        next_offset = log.end_offset if last else segments[number + 1].base_offset
        largest_ms: int | None = None
        # Of the first ones alone: the rest is not listed.
        if number < MAX_LISTED or last:
            try:
                largest_ms = segment.largest_timestamp()
            except (RebuildingError, CorruptIndexError):
                largest_ms = None
            except OSError as error:
                if segment in log.segments:
                    raise storage_error("cannot read the time of a segment", error) from None
                continue  # removed meanwhile
        found.append(SegmentFacts(segment.base_offset, next_offset, segment.size_bytes, largest_ms))
    return found


def refuse(reason: str, code: str = "bad_request") -> dict[str, Any]:
    """The error's document."""
    return {"segments": VERSION, "error": {"code": code, "message": reason}}
