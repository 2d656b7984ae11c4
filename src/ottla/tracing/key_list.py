"""Lists the messages of one key: of each partition the newest first, within a budget of bytes.

    {"journey": 1, "topic", "messages": [{"partition", "offset", "timestamp_ms", "value"}, ...],
     "searched": [{"partition", "down_to_offset", "whole", "has_removed"}, ...]}

The messages are in the order of partitions and offsets. `value` is as in a journey (null: a
tombstone), cut at `MAX_VALUE_BYTES`. A partition that is not `whole` may have older ones below
`down_to_offset`. `has_removed`: deletion or compaction has removed messages of it, or may have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.journey.explain import VERSION, content
from ottla.journey.moment import Document
from ottla.journey.record_in_batch import all_with_key
from ottla.log.scan import scan_batches
from ottla.replica.partition import Partition
from ottla.tracing.key_search import Searched, in_thread, newest_first
from ottla.tracing.segment_search import BUDGET_BYTES, Window

MAX_MESSAGES: Final = 1000
"""In one answer, of all partitions together."""
MAX_VALUE_BYTES: Final = 200


class Listed(NamedTuple):
    """A message of the key; `value` as in a journey."""

    offset: int
    timestamp_ms: int
    value: Document | None


async def list_key(
    topic: str,
    key: bytes,
    partitions: Sequence[Partition],
    budget_bytes: int = BUDGET_BYTES,
    most: int = MAX_MESSAGES,
) -> Document:
    """The document above. The partitions are read in the given order until a limit is reached.

    Raises ApiError KAFKA_STORAGE_ERROR or CORRUPT_MESSAGE if the log cannot be read.
    """
    found: dict[int, list[Listed]] = {}
    searched: list[Searched] = []
    for partition in partitions:
        log = partition.log
        down_to = log.end_offset
        listed = found[partition.index] = []
        for window in newest_first(log):
            if budget_bytes <= 0 or most <= 0:
                break
            budget_bytes -= window.size_bytes
            # One more than fits tells whether the window has older ones.
            held = await in_thread(newest_in_window, window, key, down_to, most + 1)
            kept = held[-most:]
            down_to = kept[0].offset if len(held) > most else window.first_offset
            # Deleted records may still lie in the segment.
            kept = [one for one in kept if one.offset >= log.start_offset]
            listed[:0] = kept
            most -= len(kept)
        searched.append(Searched.of(partition, down_to))
    return {
        "journey": VERSION,
        "topic": topic,
        "messages": [
            {"partition": index, **one._asdict()} for index in sorted(found) for one in found[index]
        ],
        "searched": ends_of(searched),
    }


def newest_in_window(window: Window, key: bytes, before_offset: int, most: int) -> list[Listed]:
    """The window's newest `most` messages of the key below `before_offset`, oldest first.

    Raises OSError, CorruptBatchError, InvalidRecordError.
    """
    newest: deque[Listed] = deque(maxlen=most)
    for _, header, batch in scan_batches(window.file, window.position, window.end):
        if header.base_offset >= before_offset:
            break
        newest.extend(
            Listed(record.offset, record.timestamp_ms, content(record.value, MAX_VALUE_BYTES))
            for record in all_with_key(header, batch, key)
            if record.offset < before_offset
        )
    return list(newest)


def ends_of(searched: Sequence[Searched]) -> list[Document]:
    """How far back each partition was searched."""
    return [
        {
            "partition": one.partition,
            "down_to_offset": one.down_to,
            "whole": one.whole,
            "has_removed": one.has_removed,
        }
        for one in sorted(searched)
    ]
