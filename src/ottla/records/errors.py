"""The errors of a batch, as a tree.

ApiError
    CorruptBatchError   CORRUPT_MESSAGE: the bytes were damaged in transit; a client may retry
    InvalidRecordError  INVALID_RECORD (or INVALID_TIMESTAMP): intact, but a client must not write
                        it; a retry is useless; `record_errors` names the invalid records
LongBatchError          nothing is known of the batch: its check takes too long for the event loop
"""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode


class RecordError(NamedTuple):
    """One refused record: its index in the batch, from 0, and the reason (KIP-467)."""

    batch_index: int
    message: str


class LongBatchError(Exception):
    """A check would hold the event loop: it belongs in a thread."""


class CorruptBatchError(ApiError):
    """The bytes are not a batch, or the checksum is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.corrupt_message, message)


class InvalidRecordError(ApiError):
    """A well-formed batch that a client must not write."""

    def __init__(
        self,
        message: str,
        record_errors: Sequence[RecordError] = (),
        code: ErrorCode = ErrorCode.invalid_record,
    ) -> None:
        super().__init__(code, message)
        self.record_errors = tuple(record_errors)
