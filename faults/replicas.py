"""Compares the logs of a partition's replicas byte by byte after a clean stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from faults.anomaly import Anomaly, Kind
from faults.history import Epochs
from ottla.records.errors import CorruptBatchError
from ottla.records.header import BatchHeader, ensure_crc, iterate_headers


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch as stored on disk, with its decoded header."""

    header: BatchHeader
    data: bytes


def batches(folder: Path) -> Iterator[Batch]:
    """All batches of a partition's folder, in the order of its segments.

    Raises CorruptBatchError if a header, a checksum or a segment's end is wrong.
    """
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        position = 0
        for header in iterate_headers(data):
            batch = data[position : position + header.size_bytes]
            ensure_crc(header, batch)
            yield Batch(header, batch)
            position += header.size_bytes
        if position != len(data):
            raise CorruptBatchError(f"{path.name} has {len(data) - position} bytes after its end")


def segment_start(folder: Path) -> int:
    """The base offset of the newest segment: the log's position after retention deleted all."""
    return max((int(path.stem) for path in folder.glob("*.log")), default=0)


def checkpoint(path: Path) -> list[list[str]]:
    """The entries of one of Kafka's checkpoint files: version, number of entries, entries."""
    return [line.split() for line in path.read_text().splitlines()[2:]]


def high_watermark(data: Path, topic: str, partition: int) -> int:
    """The checkpointed high watermark of a stopped broker; 0 without a checkpoint."""
    path = data / "replication-offset-checkpoint"
    if not path.is_file():
        return 0
    entries = [entry for entry in checkpoint(path) if entry[:2] == [topic, str(partition)]]
    return int(entries[0][2]) if entries else 0


def epochs(data: Path, topic: str, partition: int, at_ms: int) -> Epochs:
    """The leader epochs of this replica's log."""
    path = data / f"{topic}-{partition}" / "leader-epoch-checkpoint"
    entries = checkpoint(path) if path.is_file() else []
    return Epochs(at_ms, partition, tuple((int(epoch), int(start)) for epoch, start in entries))


def compare(topic: str, partition: int, folders: Sequence[Path]) -> list[Anomaly]:
    """Where the replicas differ below the highest high watermark of any of them.

    `folders` are the data folders of the brokers with a replica; the brokers have stopped.
    """
    mark = max((high_watermark(folder, topic, partition) for folder in folders), default=0)
    found: list[Anomaly] = []
    logs: dict[str, list[Batch]] = {}
    for folder in folders:
        try:
            all_of_it = batches(folder / f"{topic}-{partition}")
            logs[folder.name] = [each for each in all_of_it if each.header.base_offset < mark]
        except CorruptBatchError as fault:
            found.append(Anomaly(Kind.replicas_differ, partition, f"{folder.name}: {fault}"))
    for folder in folders:
        if folder.name in logs:
            start = segment_start(folder / f"{topic}-{partition}")
            found += _whole(folder.name, partition, logs[folder.name], start, mark)
    names = list(logs)
    for name in names[1:]:
        found += _same(partition, (names[0], logs[names[0]]), (name, logs[name]))
    return found


def _whole(
    name: str, partition: int, log: Sequence[Batch], start: int, mark: int
) -> Iterator[Anomaly]:
    """Offsets are consecutive and reach the high watermark. `start`: an empty log's position."""
    expected = log[0].header.base_offset if log else start
    for batch in log:
        if batch.header.base_offset != expected:
            what = f"{name}: a batch at offset {batch.header.base_offset} follows {expected - 1}"
            yield Anomaly(Kind.offset_gap, partition, what)
        expected = batch.header.next_offset
    if expected < mark:
        what = f"{name}: the log ends at {expected}, below the high watermark {mark}"
        yield Anomaly(Kind.replicas_differ, partition, what)


def _same(
    partition: int, one: tuple[str, Sequence[Batch]], other: tuple[str, Sequence[Batch]]
) -> Iterator[Anomaly]:
    """The first batch in which two replicas differ; `_whole` reports missing batches."""
    starts = [log[0].header.base_offset for _, log in (one, other) if log]
    first = max(starts, default=0)
    pairs = zip(
        (batch for batch in one[1] if batch.header.base_offset >= first),
        (batch for batch in other[1] if batch.header.base_offset >= first),
        strict=False,
    )
    for left, right in pairs:
        if left.data != right.data:
            what = (
                f"{one[0]} and {other[0]} differ: {_short(left.header)} and {_short(right.header)}"
            )
            yield Anomaly(Kind.replicas_differ, partition, what)
            return


def _short(header: BatchHeader) -> str:
    return (
        f"offsets {header.base_offset} to {header.last_offset} of epoch {header.leader_epoch},"
        f" producer {header.producer_id}"
    )
