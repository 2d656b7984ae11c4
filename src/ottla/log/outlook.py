"""Which segments retention will delete soon, oldest first. Pure; the rules are those of `expiry`.

What retention.bytes will delete depends on what will be written. It is estimated: as many bytes as
in the last day.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.log.config import LogConfig
from ottla.log.expiry import expires_ms, missing_bytes

DAY_MS: Final = 24 * 3_600_000


class Piece(NamedTuple):
    """A segment; the time is that of its newest record, -1 if none has one."""

    next_offset: int
    size_bytes: int
    largest_timestamp_ms: int


class Going(NamedTuple):
    """The records before this offset may be deleted in this time."""

    next_offset: int
    in_ms: int


def outlook(pieces: Sequence[Piece], config: LogConfig, now_ms: int, within_ms: int) -> list[Going]:
    """Of the segments that may be deleted within this time. `pieces`: all, oldest first."""
    recent = sum(each.size_bytes for each in pieces if each.largest_timestamp_ms > now_ms - DAY_MS)
    bytes_after = sum(each.size_bytes for each in pieces)
    newest_ms = -1
    found: list[Going] = []
    for piece in pieces:
        bytes_after -= piece.size_bytes
        newest_ms = max(newest_ms, piece.largest_timestamp_ms)
        times = []
        expires = expires_ms(newest_ms, config)
        if expires is not None:
            times.append(max(0, expires - now_ms))
        missing = missing_bytes(bytes_after, config)
        if missing is not None and missing <= 0:
            times.append(0)
        elif missing is not None and recent:
            times.append(missing * DAY_MS // recent)
        in_ms = min(times, default=None)
        if in_ms is None or in_ms > within_ms:
            break
        found.append(Going(piece.next_offset, in_ms))
    return found
