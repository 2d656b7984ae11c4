"""Internal topics of streams groups are created once, and errors are kept for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cluster.streams_topics import MAX_ERRORS, StreamsTopics
from ottla.controller.plan import DONE, Outcome
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode


class World:
    def __init__(self) -> None:
        self.now_ms = 1_000
        self.asked: list[list[str]] = []
        self.outcome = DONE
        clock: Any = SimpleNamespace(monotonic_ms=lambda: self.now_ms)
        self.topics = StreamsTopics(clock, self.create_them)

    async def create_them(self, topics: Sequence[NewTopic]) -> dict[str, Outcome]:
        self.asked.append([topic.name for topic in topics])
        await asyncio.sleep(0)
        return {topic.name: self.outcome for topic in topics}

    async def create(self, *names: str) -> None:
        self.topics.create([NewTopic(name) for name in names], 500)
        for _ in range(4):
            await asyncio.sleep(0)


async def test_nothing_is_asked_for_twice_at_a_time() -> None:
    world = World()
    world.topics.create([NewTopic("a")], 500)
    await world.create("a", "b")
    assert world.asked == [["a"], ["b"]]
    await world.create("a")
    assert world.asked[2:] == [["a"]]
    assert world.topics.errors(["a", "b"]) == []


async def test_an_error_is_kept_and_then_tried_again() -> None:
    world = World()
    world.outcome = Outcome(ErrorCode.invalid_replication_factor, None)
    await world.create("a")
    assert world.topics.errors(["a", "b"]) == [("a", "invalid replication factor")]
    await world.create("a")
    world.now_ms += 500
    assert world.topics.errors(["a"]) == []
    world.outcome = DONE
    await world.create("a")
    assert world.asked == [["a"], ["a"]]
    assert world.topics.errors(["a"]) == []


async def test_a_failure_of_many_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.outcome = Outcome(ErrorCode.invalid_replication_factor, None)
    await world.create("a", "b", "c")
    assert caplog.messages == [
        "the internal topic c and 2 more cannot be created: invalid replication factor"
    ]


async def test_so_many_errors_are_kept() -> None:
    world = World()
    world.outcome = Outcome(ErrorCode.policy_violation, "no")
    names = [str(number) for number in range(MAX_ERRORS + 5)]
    await world.create(*names)
    assert len(world.topics.errors(names)) == MAX_ERRORS


async def test_a_close_ends_it() -> None:
    world = World()
    world.topics.create([NewTopic("a")], 500)
    world.topics.close()
    await world.create()
    assert world.asked == []
