"""Names of files and folders, as in Kafka."""

from typing import Final
from uuid import UUID

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
SEGMENT_SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TXN_INDEX)

CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
DELETED: Final = ".deleted"
CUT: Final = ".cut"
REBUILT: Final = ".rebuilt"

DELETED_FOLDER: Final = "-delete"
STRAY_FOLDER: Final = "-stray"
_MAX_NAME: Final = 255


def file_name(base_offset: int, suffix: str) -> str:
    """Twenty digits, so that names sort like offsets."""
    return f"{base_offset:020d}{suffix}"


def offset_of(name: str) -> int | None:
    """The offset at the start of a file's name; None for other files."""
    digits = name[:20]
    return int(digits) if len(name) > 20 and name[20] == "." and digits.isdecimal() else None


def folder_name(topic: str, partition: int) -> str:
    """The folder of a partition."""
    return f"{topic}-{partition}"


def deleted_folder_name(topic: str, partition: int, unique: UUID) -> str:
    """A unique name for the folder of a deleted partition until it is removed."""
    return _capped(topic, f"-{partition}.{unique.hex}{DELETED_FOLDER}")


def stray_folder_name(topic: str, partition: int, unique: UUID) -> str:
    """A unique name for the folder of a partition that is kept, but belongs to no topic here
    (LocalLog.logStrayDirName)."""
    return _capped(topic, f"-{partition}.{unique.hex}{STRAY_FOLDER}")


def _capped(topic: str, suffix: str) -> str:
    return topic[: _MAX_NAME - len(suffix)] + suffix


def stray_partition_of(folder: str) -> tuple[str, int] | None:
    """Topic and partition of a stray folder's name; None if it is not one. A topic's name of more
    than 200 characters may be cut there.
    """
    if not folder.endswith(STRAY_FOLDER):
        return None
    return partition_of(folder.removesuffix(STRAY_FOLDER).rpartition(".")[0])


def partition_of(folder: str) -> tuple[str, int] | None:
    """Topic and partition of a folder name; None if it is not a partition's."""
    topic, dash, digits = folder.rpartition("-")
    return (topic, int(digits)) if dash and topic and digits.isdecimal() else None
