"""Timers of a shard on the loop: set, moved, cancelled."""

from __future__ import annotations

import asyncio
import time

from ottla.coordinator.timers import ShardTimers
from ottla.groups.step import JoinExpired, TimerEvent, TimerKey

KEY = TimerKey("join", "g")


async def fired(timers: ShardTimers, events: list[TimerEvent]) -> None:
    while len(timers):
        await asyncio.sleep(0.002)
    assert len(events) <= 1


async def test_a_timer_fires_once() -> None:
    events: list[TimerEvent] = []
    timers = ShardTimers(events.append)
    timers.set(KEY, 1, JoinExpired("g"))
    await fired(timers, events)
    assert events == [JoinExpired("g")]


async def test_a_timer_that_is_moved_later_fires_then_with_its_new_event() -> None:
    events: list[TimerEvent] = []
    timers = ShardTimers(events.append)
    timers.set(KEY, 1, JoinExpired("early"))
    timers.set(KEY, 3_600_000, JoinExpired("much later"))
    await asyncio.sleep(0.01)
    assert events == []
    timers.set(KEY, 1, JoinExpired("late"))
    await fired(timers, events)
    assert events == [JoinExpired("late")]


async def test_a_timer_that_is_moved_earlier_fires_then() -> None:
    events: list[TimerEvent] = []
    timers = ShardTimers(events.append)
    timers.set(KEY, 3_600_000, JoinExpired("late"))
    timers.set(KEY, 1, JoinExpired("early"))
    await fired(timers, events)
    assert events == [JoinExpired("early")]


async def test_cancelled_timers_do_not_fire() -> None:
    events: list[TimerEvent] = []
    timers = ShardTimers(events.append)
    other = TimerKey("join", "h")
    timers.set(KEY, 1, JoinExpired("g"))
    timers.set(other, 1, JoinExpired("h"))
    timers.cancel(KEY)
    timers.cancel(KEY)
    assert len(timers) == 1
    timers.cancel_all()
    await asyncio.sleep(0.01)
    assert (events, len(timers)) == ([], 0)


async def test_a_timer_may_be_set_again_as_it_fires() -> None:
    events: list[TimerEvent] = []

    def again(event: TimerEvent) -> None:
        events.append(event)
        if len(events) < 3:
            timers.set(KEY, 0, event)

    timers = ShardTimers(again)
    timers.set(KEY, 0, JoinExpired("g"))
    while len(timers):
        await asyncio.sleep(0.001)
    assert len(events) == 3


async def test_a_loop_that_was_held_up_first_reads_what_came_meanwhile() -> None:
    events: list[TimerEvent] = []
    timers = ShardTimers(events.append)
    timers.set(KEY, 1, JoinExpired("g"))
    time.sleep(0.3)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert events == []
    await fired(timers, events)
    assert events == [JoinExpired("g")]
