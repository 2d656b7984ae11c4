"""Errors of storage.

ApiError            KAFKA_STORAGE_ERROR, from `storage_error`: the disk failed; the log is
                    unchanged
    SyncError       an fsync failed: nobody knows what is on the disk, and trying again is no help
    OutOfFilesError this process, or its machine, has too many open files: trying again helps
DataFolderError     the data folder cannot be used; one line says why and what to do
CorruptIndexError   an index that does not match its log; it is rebuilt, and never reported
RebuildingError     ApiError NOT_LEADER_OR_FOLLOWER: it is rebuilt now; then the same call works
"""

import errno

from ottla.log.task import Rebuild
from ottla.protocol.errors import ApiError, ErrorCode


class DataFolderError(Exception):
    """The data folder is locked, unreadable or another broker's."""


class CorruptIndexError(Exception):
    """An index file that cannot belong to its segment."""


class SyncError(ApiError):
    """An fsync failed, so the broker stops (as Kafka's does with the only log directory offline:
    LogDirFailureChannel, LogManager.handleLogDirFailure).

    Linux reports the error once and then counts the pages that it could not write as clean: the
    next fsync of the file succeeds, and what it seems to have made durable is gone after a power
    failure.
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.kafka_storage_error, message)


class OutOfFilesError(ApiError):
    """A file could not be opened because too many are open: the disk has not failed."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.kafka_storage_error, message)


class RebuildingError(ApiError):
    """The indexes of a segment are rebuilt off the event loop: try again when `rebuild` is over.

    To a client that nobody lets wait it is a reason to try again, as while the producers of a
    truncated log are read (`producer_load`).
    """

    def __init__(self, path: str, rebuild: Rebuild) -> None:
        super().__init__(
            ErrorCode.not_leader_or_follower, f"the indexes of {path} are being built again"
        )
        self.rebuild = rebuild


def sync_error(doing: str, error: OSError) -> SyncError:
    """With one line: the action, the file, and the system's reason."""
    return SyncError(f"{doing}: {error.strerror or error}")


def storage_error(doing: str, error: OSError) -> ApiError:
    """KAFKA_STORAGE_ERROR with one line: the action, the file, and the system's reason."""
    message = f"{doing}: {reason(doing, error)}"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return OutOfFilesError(message)
    return ApiError(ErrorCode.kafka_storage_error, message)


def reason(doing: str, error: OSError) -> str:
    """The system's reason, with the file if `doing` does not name it."""
    file = error.filename
    is_named = not isinstance(file, str) or file in doing
    why = error.strerror or str(error)
    return why if is_named else f"{file}: {why}"


def damaged_error(path: str, why: object) -> ApiError:
    """KAFKA_STORAGE_ERROR for a log file that holds something else than batches."""
    return ApiError(ErrorCode.kafka_storage_error, f"{path} is damaged: {why}")
