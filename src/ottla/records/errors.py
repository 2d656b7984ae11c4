"""What can be wrong with a batch, drawn as one tree.

ApiError
    CorruptBatchError   CORRUPT_MESSAGE: these bytes were damaged on their way; a client may try
    again InvalidRecordError  INVALID_RECORD: whole, but not what a client may write; trying again
    is useless
        (or INVALID_TIMESTAMP); `record_errors` names the records, where single ones are at fault
"""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode


class RecordError(NamedTuple):
    """One refused record: its place in the batch, from 0, and why (KIP-467)."""

    batch_index: int
    message: str


class CorruptBatchError(ApiError):
    """Bytes that do not form a batch, or whose checksum does not fit."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.corrupt_message, message)


class InvalidRecordError(ApiError):
    """A well-formed batch that no client may write."""

    def __init__(
        self,
        message: str,
        record_errors: Sequence[RecordError] = (),
        code: ErrorCode = ErrorCode.invalid_record,
    ) -> None:
        super().__init__(code, message)
        self.record_errors = tuple(record_errors)
