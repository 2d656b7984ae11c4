"""Limits the memory of all connections together: of requests, and of responses nobody reads.

One connection is bounded: a frame of at most socket.request.max.bytes, and some responses. But
there may be thousands, and their clients may begin frames and not end them, or never read. Kafka
limits requests with queued.max.request.bytes (KIP-72) if it is set: without free memory it stops
reading, from all clients. Then a few that begin frames and stall stop all others. Here the
connections that hold the memory end instead:

1. those whose client has done nothing for STALLED_MS, the longest ones first;
2. then those that hold most.

Nothing is counted exactly. What was allocated and written is added up, and when it could matter all
connections are looked at: when that is half of what was left at the last look. So a broker that
writes gigabytes a second to clients that read them looks rarely. The sum can exceed its limit by
PART of it for a moment.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Final, Protocol

logger = logging.getLogger("ottla.connection")

STALLED_MS: Final = 10_000
PART: Final = 8
MIN_BETWEEN_BYTES: Final = 64 << 20
"""The connections are looked at after so many bytes at the earliest, or after PART of a lower
limit.
"""
MIN_DEFAULT_BYTES: Final = 256 << 20


class Holder(Protocol):
    """A connection."""

    active_ms: int

    @property
    def request_bytes(self) -> int: ...

    @property
    def unsent_bytes(self) -> int: ...

    @property
    def host(self) -> str: ...

    def abort(self) -> None: ...


def default_bytes() -> int:
    """A quarter of the machine's memory."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(MIN_DEFAULT_BYTES, memory_bytes // 4)


class ConnectionMemory:
    """Of the connections of all listeners. For the event loop's thread only."""

    def __init__(self, max_request_bytes: int, max_unsent_bytes: int) -> None:
        self.ended = 0
        """How many connections ended because of it."""
        self._max_request_bytes = max_request_bytes
        self._max_unsent_bytes = max_unsent_bytes
        self._min_between_bytes = min(
            MIN_BETWEEN_BYTES, max_request_bytes // PART, max_unsent_bytes // PART
        )
        self._between_bytes = self._min_between_bytes
        self._spent_bytes = 0
        self._is_look_due = False
        self._holders: dict[Holder, None] = {}

    def add(self, holder: Holder) -> None:
        self._holders[holder] = None

    def remove(self, holder: Holder) -> None:
        self._holders.pop(holder, None)

    def spent(self, size_bytes: int) -> None:
        """So many bytes were allocated for frames, or written to clients."""
        self._spent_bytes += size_bytes
        if self._spent_bytes > self._between_bytes and not self._is_look_due:
            self._is_look_due = True
            # Not at once: a connection is at work.
            asyncio.get_running_loop().call_soon(self.look)

    def look(self) -> None:
        """End connections until the others are below the limits."""
        self._is_look_due = False
        self._spent_bytes = 0
        left_bytes = min(
            self._end(
                {each: each.request_bytes for each in self._holders},
                self._max_request_bytes,
                "of requests (queued.max.request.bytes)",
            ),
            self._end(
                {each: each.unsent_bytes for each in self._holders},
                self._max_unsent_bytes,
                "of responses that their clients do not read",
            ),
        )
        self._between_bytes = max(left_bytes // 2, self._min_between_bytes)

    def _end(self, held: dict[Holder, int], max_bytes: int, what: str) -> int:
        """Returns how far the sum is below its limit; 0 if it was above."""
        sum_bytes = sum(held.values())
        if sum_bytes <= max_bytes:
            return max_bytes - sum_bytes
        now_ms = max(each.active_ms for each in held)

        def last(holder: Holder) -> tuple[bool, int]:
            if holder.active_ms < now_ms - STALLED_MS:
                return False, holder.active_ms
            return True, -held[holder]

        left_bytes, ended = sum_bytes, 0
        host = ""
        for holder in sorted(filter(held.__getitem__, held), key=last):
            if left_bytes <= max_bytes:
                break
            left_bytes -= held[holder]
            ended += 1
            host = host or holder.host
            holder.abort()
        self.ended += ended
        logger.warning(
            "all connections together held %d MiB %s, and may hold %d MiB:"
            " ended %d connections that stalled or held most, the first from %s",
            sum_bytes >> 20,
            what,
            max_bytes >> 20,
            ended,
            host,
        )
        return 0
