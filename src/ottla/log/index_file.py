"""What the offset index and the time index have in common: a file of fixed-size entries, sorted by
their first field.

Entries of the active segment are kept in memory and stored when the log is flushed, rolled or
closed; lookups in closed segments read the file. After a crash, entries may be missing or torn, or
some may be left that a truncation removed. So the indexes of the last segment and of every segment
from the recovery point on are rebuilt from the log, and the recovery point advances only past
stored entries. A segment that is rolled exactly at the recovery point gets its last entries later:
the next flush syncs them. A power failure before that may take them; Kafka does not see that,
either.
"""

import errno
import os
import stat
from struct import Struct
from typing import Final

from ottla.log.errors import CorruptIndexError, storage_error
from ottla.log.page_cache import Pread
from ottla.protocol.errors import ApiError

_NO_ROOM: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def append_entries(path: str, stored_bytes: int, entries: bytes) -> None:
    """Write `entries` after the first `stored_bytes` of the file, and truncate what follows."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.ftruncate(fd, stored_bytes)
        written = 0
        while written < len(entries):
            written += os.pwrite(fd, entries[written:], stored_bytes + written)
    finally:
        os.close(fd)


def read_entries(path: str, entry: Struct) -> bytes:
    """The whole file. Raises CorruptIndexError if it is missing, cannot be read or ends inside an
    entry.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise unreadable(path, error) from None
    if len(data) % entry.size:
        raise CorruptIndexError(f"{path} ends inside an entry")
    return data


def find_entry(
    path: str, entry: Struct, key: int, pread: Pread = os.pread
) -> tuple[int, tuple[int, int] | None]:
    """The last entry whose first field is at most `key`: its number and the entry, or -1 and None.

    Reads only a few entries of the file, so that a lookup in a big closed segment leaves nothing in
    memory. Raises CorruptIndexError as `read_entries`.
    """
    fd, count = _open_entries(path, entry)
    try:
        low, high = -1, count
        found: tuple[int, int] | None = None
        while high - low > 1:
            middle = (low + high) // 2
            first, second = entry.unpack(pread(fd, entry.size, middle * entry.size))
            if first <= key:
                low, found = middle, (first, second)
            else:
                high = middle
        return low, found
    except OSError as error:
        raise unreadable(path, error) from None
    finally:
        os.close(fd)


def find_entry_from(
    path: str, entry: Struct, position: int, pread: Pread = os.pread
) -> tuple[int, int] | None:
    """The first entry whose second field is at least `position`; None if there is none.

    Raises CorruptIndexError as `read_entries`.
    """
    fd, count = _open_entries(path, entry)
    try:
        low, high = 0, count
        found: tuple[int, int] | None = None
        while low < high:
            middle = (low + high) // 2
            first, second = entry.unpack(pread(fd, entry.size, middle * entry.size))
            if second < position:
                low = middle + 1
            else:
                high, found = middle, (first, second)
        return found
    except OSError as error:
        raise unreadable(path, error) from None
    finally:
        os.close(fd)


def last_entry(path: str, entry: Struct) -> tuple[int, int] | None:
    """The file's last entry, or None if it has none. Raises CorruptIndexError as above."""
    fd, count = _open_entries(path, entry)
    try:
        if count == 0:
            return None
        first, second = entry.unpack(os.pread(fd, entry.size, (count - 1) * entry.size))
        return first, second
    except OSError as error:
        raise unreadable(path, error) from None
    finally:
        os.close(fd)


def _open_entries(path: str, entry: Struct) -> tuple[int, int]:
    """The open file, and how many entries it has. Raises CorruptIndexError as `read_entries`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable(path, error) from None
    status = os.fstat(fd)
    count, rest = divmod(status.st_size, entry.size)
    if rest or not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise CorruptIndexError(f"{path} ends inside an entry")
    return fd, count


def unreadable(path: str, error: OSError) -> CorruptIndexError | ApiError:
    """An index that cannot be read is built again, unless the process has no room for it."""
    if error.errno in _NO_ROOM:
        return storage_error(f"cannot read {path}", error)
    return CorruptIndexError(f"{path}: {error.strerror}")
