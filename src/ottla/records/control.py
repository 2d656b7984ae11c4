"""Control records: the markers that end a transaction; only brokers write them.

key: version int16 | type int16 (0 abort, 1 commit)      value: version int16 | coordinator epoch
int32
"""

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct, error
from typing import Final

from ottla.records.build import build_batch
from ottla.records.errors import InvalidRecordError
from ottla.records.header import Buffer
from ottla.records.iterate import iterate_records
from ottla.records.record import Record

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")


class ControlType(IntEnum):
    """The type of a control record. Other numbers belong to KRaft's own log."""

    abort = 0
    commit = 1


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """The end of a transaction."""

    type: ControlType
    coordinator_epoch: int
    timestamp_ms: int


def read_end_marker(batch: Buffer) -> EndTransactionMarker | None:
    """The marker in a whole control batch; None if compaction left the batch empty.

    Raises InvalidRecordError for a control record that does not end a transaction.
    """
    for record in iterate_records(batch):
        try:
            _, number = _KEY.unpack_from(record.key or b"")
            _, epoch = _VALUE.unpack_from(record.value or b"")
            return EndTransactionMarker(ControlType(number), epoch, record.timestamp_ms)
        except (error, ValueError):
            raise InvalidRecordError("the control record does not end a transaction") from None
    return None


def write_end_marker(
    kind: ControlType,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
) -> bytes:
    """A control batch that ends this producer's transaction."""
    key, value = _KEY.pack(0, kind), _VALUE.pack(0, coordinator_epoch)
    return build_batch(
        [Record(0, timestamp_ms, key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
