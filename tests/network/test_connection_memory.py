"""Which connections end when all together hold too much."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ottla.network.connection_memory import (
    MIN_DEFAULT_BYTES,
    STALLED_MS,
    ConnectionMemory,
    default_bytes,
)

MIB = 1 << 20


class Connection:
    def __init__(
        self,
        memory: ConnectionMemory,
        host: str,
        *,
        request_mib: int = 0,
        unsent_mib: int = 0,
        active_ms: int = 100_000,
    ) -> None:
        self._memory = memory
        self.host = host
        self.request_bytes = request_mib * MIB
        self.unsent_bytes = unsent_mib * MIB
        self.active_ms = active_ms
        self.ended = False
        memory.add(self)

    def abort(self) -> None:
        self.ended = True
        self._memory.remove(self)


@pytest.fixture
def memory() -> ConnectionMemory:
    return ConnectionMemory(max_request_bytes=16 * MIB, max_unsent_bytes=32 * MIB)


def test_up_to_the_limit_nobody_ends(memory: ConnectionMemory) -> None:
    busy = [Connection(memory, "a", request_mib=8, unsent_mib=16) for _ in range(2)]
    memory.look()
    assert not any(each.ended for each in busy)
    assert memory.ended == 0


def test_those_that_stall_end_first_the_longest_ones_before_the_others(
    memory: ConnectionMemory, caplog: pytest.LogCaptureFixture
) -> None:
    now_ms = 100_000
    large = Connection(memory, "large", request_mib=12)
    older, old = (
        Connection(memory, host, request_mib=3, active_ms=now_ms - STALLED_MS - since_ms)
        for host, since_ms in (("older", 2), ("old", 1))
    )
    idle = Connection(memory, "idle", active_ms=0)
    with caplog.at_level(logging.WARNING, "ottla.connection"):
        memory.look()
    assert [each.ended for each in (large, older, old, idle)] == [False, True, False, False]
    assert caplog.messages == [
        "all connections together held 18 MiB of requests (queued.max.request.bytes), and may hold"
        " 16 MiB: ended 1 connections that stalled or held most, the first from older"
    ]
    assert memory.ended == 1


def test_then_those_end_that_hold_most(memory: ConnectionMemory) -> None:
    small = [Connection(memory, "small", unsent_mib=1) for _ in range(3)]
    large, larger = (Connection(memory, "large", unsent_mib=size) for size in (20, 21))
    memory.look()
    assert (larger.ended, large.ended) == (True, False)
    assert not any(each.ended for each in small)


async def test_they_are_looked_at_when_enough_was_spent(memory: ConnectionMemory) -> None:
    holder = Connection(memory, "a", request_mib=17)
    memory.spent(2 * MIB)
    await asyncio.sleep(0)
    assert not holder.ended
    memory.spent(1)
    assert not holder.ended, "it is at work now"
    await asyncio.sleep(0)
    assert holder.ended


async def test_while_little_is_held_they_are_looked_at_rarely(memory: ConnectionMemory) -> None:
    """There may be tens of thousands, and gigabytes a second."""
    memory.look()  # 16 MiB are left
    holder = Connection(memory, "a", request_mib=17)
    memory.spent(8 * MIB)
    await asyncio.sleep(0)
    assert not holder.ended
    memory.spent(1)
    await asyncio.sleep(0)
    assert holder.ended


def test_the_default_is_a_part_of_the_memory() -> None:
    assert default_bytes() >= MIN_DEFAULT_BYTES
