"""Control records: the markers that end a transaction, written by brokers alone.

key: version int16 | type int16 (0 abort, 1 commit)      value: version int16 | coordinator epoch
int32
"""

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct, error
from typing import Final

from ottla.records.errors import InvalidRecordError
from ottla.records.header import Buffer
from ottla.records.iterate import iterate_records

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")


class ControlType(IntEnum):
    """What a control record says. Other numbers belong to KRaft's own log."""

    abort = 0
    commit = 1


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """One end of a transaction."""

    type: ControlType
    coordinator_epoch: int
    timestamp_ms: int


def read_end_marker(batch: Buffer) -> EndTransactionMarker | None:
    """The marker in a whole control batch; None where compaction left the batch empty.

    Raises InvalidRecordError for a control record that is no end of a transaction.
    """
    for record in iterate_records(batch):
        try:
            _, number = _KEY.unpack_from(record.key or b"")
            _, epoch = _VALUE.unpack_from(record.value or b"")
            return EndTransactionMarker(ControlType(number), epoch, record.timestamp_ms)
        except (error, ValueError):
            raise InvalidRecordError("a control record that ends no transaction") from None
    return None
