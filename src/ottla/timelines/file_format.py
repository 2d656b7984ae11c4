"""The file of a segment's timelines: `<base offset, 20 digits>.timeline`, beside the segment.

A file is 8 bytes `ottlatl1` and then blocks, one for each time that steps were written. Numbers
are big-endian.

    block   size      u32   bytes that follow the checksum
            checksum  u32   CRC-32C of those bytes
            base time i64   ms since 1970: the smallest of the block
            base      i64   the smallest offset of the block
            names     u8    how many
            steps     u16   how many
            names           each: size u16, then JSON: a string, a list of strings (a pipeline, or
                            what it rejected), of [producer id, client id] pairs, or a role:
                            [leader, leader epoch, [in-sync brokers], partition epoch]
            steps           24 bytes each:
              kind u8, name u8 (its index in the list, 255: none), flags u16,
              since u32, until u32 (ms: since - base time, until - since),
              before, first, last u32 (each minus base)

Flag 1: nothing is known about the number before this step. Flag 2: a delivery rejected some of its
offsets. Flag 4: a group had no offset before. Flags 8 and 16 are a number of 0 to 3: who moved a
group's offset (`By`). Flag 32: a delivery is without records of aborted transactions. Flag 64: no
batch that was appended was of a transaction (neither records nor a marker). The flags' upper byte
is the number of a pipeline's checkpoint (`delivery_metadata.py`), 0 for unknown. A step of
kind DELIVERED is followed by one of kind 255 whose five u32 hold: first batch, last batch, first
version, last version (2^32-1: none), 0. Kind 13 (what a pipeline rejected) has the name [group,
query, where the rows go, where rejected rows are kept, reason], or only the first three: none of
the offsets is rejected any more. Kind 14 (a group's offset was removed) has the name [group,
reason]. Kinds 9 to 12 (replicas), then kind 13 and flag 2, then kind 14 and flags 4 to 16, then
kind 15 (the clock was set back; no name) and the producer id -2 (a follower copied the batches),
then flag 32, then flag 64 and the upper byte were added later. Files without them are valid;
readers ignore unknown kinds and flags.

Blocks are independent, so a file can be appended to at any time, and each block is written with
one call. A crash leaves at most one torn block at the end: `decode` stops there, and `folder.py`
truncates it before the next append. Only the content of the torn block is lost. The next steps
contain their start (`before`), so that the gap is visible, and answers become bounds. A file with a
damaged head is rewritten from the start.
"""

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

import crc32c

from ottla.timelines.step import By, Kind, Name, Step, Versions

SUFFIX: Final = ".timeline"
HEAD: Final = b"ottlatl1"
_BLOCK: Final = struct.Struct(">IIqqBH")
_ENTRY: Final = struct.Struct(">BBHIIIII")
_NAME: Final = struct.Struct(">H")
_SIZES: Final = struct.Struct(">II")
STEP_BYTES: Final = _ENTRY.size
_NO_NAME: Final = 255
_VERSIONS: Final = 255
_UNKNOWN_BEFORE: Final = 1
_HAS_REJECTS: Final = 2
_IS_FIRST: Final = 4
_BY_SHIFT: Final = 3
_BY_MASK: Final = 3
_READS_COMMITTED: Final = 32
_IS_PLAIN: Final = 64
_CHECKPOINT_SHIFT: Final = 8
_MAX_UINT32: Final = 2**32 - 1
MAX_SPAN: Final = _MAX_UINT32
"""Milliseconds or offsets that one step may span (49 days of coalescing; a commit that leaps
further is unknown).
"""
_MAX_NAMES: Final = 250
_MAX_STEPS: Final = 32_000
_KINDS: Final = {int(kind): kind for kind in Kind}


def encode(steps: Iterable[Step]) -> bytes:
    """Blocks with these steps, in this order: usually one, more if the numbers are too far
    apart.
    """
    blocks: list[bytes] = []
    group: list[Step] = []
    names: dict[Name, int] = {}
    times, offsets = (0, 0), (0, 0)
    for given in steps:
        step = _within_span(given)
        low_ms, high_ms = min(step.since_ms, times[0]), max(step.since_ms, times[1])
        low, high = min(step.before, offsets[0]), max(step.last, offsets[1])
        if group and (
            high_ms - low_ms > _MAX_UINT32
            or high - low > _MAX_UINT32
            or len(names) >= _MAX_NAMES
            or len(group) >= _MAX_STEPS
        ):
            blocks.append(_block(group, list(names), times[0], offsets[0]))
            group, names = [], {}
        if not group:
            low_ms = high_ms = step.since_ms
            low, high = step.before, step.last
        times, offsets = (low_ms, high_ms), (low, high)
        if step.name is not None:
            names.setdefault(step.name, len(names))
        group.append(step)
    if group:
        blocks.append(_block(group, list(names), times[0], offsets[0]))
    return b"".join(blocks)


def _within_span(step: Step) -> Step:
    """Make a step that exceeds the file's number range a first step: its start is lost."""
    assert step.until_ms - step.since_ms <= _MAX_UINT32
    if step.last - step.before <= _MAX_UINT32:
        return step
    return step._replace(before=step.first, unknown_before=True)


def _block(steps: Sequence[Step], names: Sequence[Name], base_ms: int, base: int) -> bytes:
    indexes = {name: index for index, name in enumerate(names)}
    entries: list[bytes] = []
    for step in steps:
        entries.append(
            _ENTRY.pack(
                step.kind,
                _NO_NAME if step.name is None else indexes[step.name],
                (_UNKNOWN_BEFORE if step.unknown_before else 0)
                | (_HAS_REJECTS if step.has_rejects else 0)
                | (_IS_FIRST if step.is_first else 0)
                | step.by << _BY_SHIFT
                | (_READS_COMMITTED if step.reads_committed else 0)
                | (_IS_PLAIN if step.is_plain else 0)
                | step.checkpoint << _CHECKPOINT_SHIFT,
                step.since_ms - base_ms,
                step.until_ms - step.since_ms,
                step.before - base,
                step.first - base,
                step.last - base,
            )
        )
        if step.versions is not None:
            numbers = (number if number >= 0 else _MAX_UINT32 for number in step.versions)
            entries.append(_ENTRY.pack(_VERSIONS, _NO_NAME, 0, *numbers, 0))
    texts = [json.dumps(name, separators=(",", ":")).encode() for name in names]
    body = b"".join(
        (
            *(_NAME.pack(len(text)) + text for text in texts),
            *entries,
        )
    )
    head = _BLOCK.pack(0, 0, base_ms, base, len(names), len(entries))[_SIZES.size :]
    checksum = crc32c.crc32c(body, crc32c.crc32c(head))
    return _SIZES.pack(len(head) + len(body), checksum) + head + body


def sound_bytes(data: bytes) -> int:
    """How many bytes of a file are valid: up to the first torn or damaged block. 0 if its head is
    not ours.
    """
    position = 0
    for _start, end in _bodies(data):
        position = end
    return position


def decode(data: bytes) -> list[Step]:
    """The steps of a file's valid blocks, in the order written."""
    steps: list[Step] = []
    for start, end in _bodies(data):
        if start < end:
            _read_block(data, start, end, steps)
    return steps


def last_steps(data: bytes) -> list[Step]:
    """Those of the last valid block: what was written last."""
    steps: list[Step] = []
    last = max(_bodies(data), default=(0, 0))
    if last[0] < last[1]:
        _read_block(data, *last, steps)
    return steps


def _bodies(data: bytes) -> Iterator[tuple[int, int]]:
    """Start (at its size) and end of each valid block; first an empty one for the file's head."""
    if data[: len(HEAD)] != HEAD:
        return
    position = len(HEAD)
    yield position, position
    while position + _BLOCK.size <= len(data):
        size, checksum = _SIZES.unpack_from(data, position)
        start = position + _SIZES.size
        if size < _BLOCK.size - _SIZES.size or start + size > len(data):
            return
        if crc32c.crc32c(memoryview(data)[start : start + size]) != checksum:
            return
        yield position, start + size
        position = start + size


def _read_block(data: bytes, start: int, end: int, steps: list[Step]) -> None:
    _, _, base_ms, base, name_count, step_count = _BLOCK.unpack_from(data, start)
    position = start + _BLOCK.size
    names: list[Name] = []
    for _ in range(name_count):
        (size,) = _NAME.unpack_from(data, position)
        position += _NAME.size + size
        names.append(_name(json.loads(data[position - size : position])))
    assert position + step_count * STEP_BYTES == end, "the checksum held, so the counts must"
    entries = memoryview(data)[position:end]
    for kind, name, flags, since, span, before, first, last in _ENTRY.iter_unpack(entries):
        if kind == _VERSIONS:
            numbers = (
                -1 if number == _MAX_UINT32 else number for number in (since, span, before, first)
            )
            steps[-1] = steps[-1]._replace(versions=Versions(*numbers))
            continue
        known = _KINDS.get(kind)
        if known is None:
            continue
        since_ms = base_ms + since
        steps.append(
            Step(
                known,
                None if name == _NO_NAME else names[name],
                since_ms,
                since_ms + span,
                base + before,
                base + first,
                base + last,
                bool(flags & _UNKNOWN_BEFORE),
                None,
                bool(flags & _HAS_REJECTS),
                By(flags >> _BY_SHIFT & _BY_MASK),
                bool(flags & _IS_FIRST),
                reads_committed=bool(flags & _READS_COMMITTED),
                is_plain=bool(flags & _IS_PLAIN),
                checkpoint=flags >> _CHECKPOINT_SHIFT,
            )
        )


def _name(said: Any) -> Name:
    """Restore the tuples of a name, which JSON turned into lists."""
    if isinstance(said, list):
        return cast(Name, tuple(tuple(pair) if isinstance(pair, list) else pair for pair in said))
    return cast(Name, said)
