"""What a crash can leave at the end of a partition's log, made by hand; and what is whole in it."""

from __future__ import annotations

from pathlib import Path
from random import Random

from ottla.records.header import HEADER_BYTES, compute_crc, read_header
from ottla.records.iterate import iterate_records


def active_segment(partition: Path) -> Path:
    return max(partition.glob("*.log"))


def tear(partition: Path, random: Random) -> str:
    """Spoils the end of the partition's active segment in one of the ways of a power cut; tells
    which.
    """
    segment = active_segment(partition)
    content = segment.read_bytes()
    batches = _batch_positions(content)
    match random.randrange(6):
        case 0 if content:
            cut = random.randrange(len(content) + 1)
            segment.write_bytes(content[:cut])
            return f"cut at byte {cut} of {len(content)}"
        case 1:
            garbage = random.randbytes(random.randrange(1, 5_000))
            segment.write_bytes(content + garbage)
            return f"{len(garbage)} random bytes appended"
        case 2 if batches:
            start, end = random.choice(batches)
            part = content[start : random.randrange(start + 1, end)]
            segment.write_bytes(content + part)
            return f"the first {len(part)} bytes of a batch appended"
        case 3:
            zeros = random.randrange(1, 20_000)
            segment.write_bytes(content + bytes(zeros))
            return f"{zeros} zeros appended"
        case 4 if batches:
            start, end = batches[-1]
            at = random.randrange(start + 21, end)
            segment.write_bytes(content[:at] + bytes([content[at] ^ 0x40]) + content[at + 1 :])
            return f"a bit of the last batch turned, at byte {at}"
        case 5 if batches:
            # An old block of the disk: a whole batch whose offsets were there before.
            start, end = random.choice(batches)
            segment.write_bytes(content + content[start:end])
            return f"the batch at byte {start} once more at the end"
    return "left as it was"


def spoil_indexes(partition: Path, random: Random) -> None:
    """Index files are not synced with the log: they may hold anything after a crash."""
    for path in sorted(partition.glob("*.index")) + sorted(partition.glob("*.timeindex")):
        match random.randrange(4):
            case 0:
                path.unlink()
            case 1:
                content = path.read_bytes()
                path.write_bytes(content[: random.randrange(len(content) + 1)])


def _batch_positions(content: bytes) -> list[tuple[int, int]]:
    found, position = [], 0
    while position + HEADER_BYTES <= len(content):
        header = read_header(content, position)
        found.append((position, position + header.size_bytes))
        position += header.size_bytes
    return found


def whole_records(partition: Path) -> dict[int, bytes]:
    """Offset to value of every record that lies whole in the partition's files, in order.

    Reading ends where recovery must end: at the first batch that is cut off, whose checksum is
    wrong, or whose offset goes back.
    """
    found: dict[int, bytes] = {}
    expected = 0
    for segment in sorted(partition.glob("*.log")):
        content = segment.read_bytes()
        position = 0
        expected = max(expected, int(segment.stem))
        while position + HEADER_BYTES <= len(content):
            batch = _whole_batch(content, position, expected)
            if batch is None:
                return found
            for record in iterate_records(batch):
                assert record.value is not None
                found[record.offset] = record.value
            expected = read_header(batch).next_offset
            position += len(batch)
        if position < len(content):
            return found
    return found


def _whole_batch(content: bytes, position: int, expected: int) -> bytes | None:
    size = 12 + int.from_bytes(content[position + 8 : position + 12], "big", signed=True)
    batch = content[position : position + size]
    if size < HEADER_BYTES or len(batch) < size or batch[16] != 2:
        return None
    header = read_header(batch)
    if header.crc != compute_crc(batch) or header.base_offset < expected:
        return None
    return batch
