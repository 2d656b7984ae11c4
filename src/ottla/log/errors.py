"""Errors of storage.

ApiError            KAFKA_STORAGE_ERROR, from `storage_error`: the disk failed; the log is
                    unchanged
DataFolderError     the data folder cannot be used; one line says why and what to do
InsaneIndexError    an index that does not match its log; it is rebuilt, and never reported
"""

from ottla.protocol.errors import ApiError, ErrorCode


class DataFolderError(Exception):
    """The data folder is locked, unreadable or another broker's."""


class InsaneIndexError(Exception):
    """An index file that cannot belong to its segment."""


def storage_error(doing: str, error: OSError) -> ApiError:
    """KAFKA_STORAGE_ERROR with one line: the action, the file, and the system's reason."""
    return ApiError(ErrorCode.kafka_storage_error, f"{doing}: {error.strerror or error}")
