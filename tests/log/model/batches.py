"""One batch as the model knows it, and the building of batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ottla.records.build import build_batch, rebuild_batch
from ottla.records.control import EndTransactionMarker, read_end_marker
from ottla.records.header import LARGEST_SEQUENCE, STAMP, BatchHeader, iterate_headers, read_header
from ottla.records.iterate import iterate_records
from ottla.records.record import Record


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that is in the log, with the bytes that the log must return for it."""

    data: bytes
    header: BatchHeader
    base: int
    last: int
    producer_id: int
    marker: EndTransactionMarker | None = None
    """Set for a control batch, unless compaction left it empty."""
    _records: list[Record] = field(default_factory=list)

    @property
    def next(self) -> int:
        return self.last + 1

    @property
    def is_data(self) -> bool:
        return not self.header.is_control

    @property
    def last_sequence(self) -> int:
        header = self.header
        if header.base_sequence < 0:
            return -1
        return (header.base_sequence + self.last - self.base) & LARGEST_SEQUENCE

    @property
    def records(self) -> list[Record]:
        """Decoded on first use."""
        if not self._records and self.header.count:
            self._records.extend(iterate_records(self.data, self.header))
        return self._records

    def __str__(self) -> str:
        header = self.header
        kind = ""
        if self.producer_id >= 0:
            kind = f" p{self.producer_id}/{header.producer_epoch}"
            kind += f" {self.marker.type.name}" if self.marker else f" seq {header.base_sequence}"
            if header.is_transactional and self.is_data:
                kind += " txn"
        gap = "" if header.count == self.last - self.base + 1 else f" ({header.count} records)"
        return f"[{self.base}-{self.last} e{header.leader_epoch}{kind}{gap}]"


def batch_of(data: bytes) -> Batch:
    """The batch in exactly these bytes."""
    header = read_header(data)
    marker = read_end_marker(data) if header.is_control else None
    return Batch(data, header, header.base_offset, header.last_offset, header.producer_id, marker)


def batches_of(data: bytes) -> Iterator[Batch]:
    """The whole batches in these bytes."""
    position = 0
    for header in iterate_headers(data):
        yield batch_of(data[position : position + header.size_bytes])
        position += header.size_bytes


def stamped(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """What a leader stores of a client's batch: only these two fields change."""
    return STAMP.pack(base_offset, len(data) - 12, leader_epoch) + data[STAMP.size :]


def thinned(data: bytes, kept: Sequence[int]) -> bytes:
    """The batch as a leader's compaction left it: only the records with these numbers."""
    records = list(iterate_records(data))
    return rebuild_batch(read_header(data), [records[number] for number in kept])


__all__ = ["Batch", "batch_of", "batches_of", "build_batch", "stamped", "thinned"]
