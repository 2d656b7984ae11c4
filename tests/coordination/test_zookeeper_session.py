"""What one session makes of what kazoo's thread tells, without an ensemble."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kazoo.protocol.states import KazooState

from ottla.coordination.tree import Change, ConnectionLostError, Event
from ottla.coordination.zookeeper_session import State, ZooKeeperSession
from ottla.coordination.zookeeper_wire import Answer

CLIENT_ID = (7, b"")


class Heard:
    """A session that was connected, and what is asked of the ensemble."""

    def __init__(self) -> None:
        self.session = ZooKeeperSession("127.0.0.1:1", "", 10_000)
        self.asked: list[Answer] = []
        self.session._client.ask = lambda request, answer: self.asked.append(answer)
        self.events: list[Event] = []

    def enters(self, *states: str) -> None:
        for state in states:
            self.session._post(self.session._entered, state, CLIENT_ID)

    def answers(self, value: Any) -> None:
        self.asked[-1].set(value)

    async def watching(self) -> asyncio.Task[Any]:
        """A read with a watch, under way."""
        watched = self.session.watched(
            lambda watcher: "read", "/a", self.session.data_watches, self.events.append
        )
        reading = asyncio.create_task(watched)
        while not self.asked:
            await asyncio.sleep(0)
        return reading


@pytest.fixture
async def heard() -> AsyncIterator[Heard]:
    made = Heard()
    made.enters(KazooState.CONNECTED)
    await asyncio.sleep(0)
    assert made.session.state is State.CONNECTED
    yield made
    made.session._over()


async def test_a_watch_fires_when_the_connection_was_away(heard: Heard) -> None:
    reading = await heard.watching()
    heard.answers("node")
    assert await reading == "node"
    heard.enters(KazooState.SUSPENDED, KazooState.CONNECTED)
    await asyncio.sleep(0)
    assert heard.events == [Event(Change.DATA, "/a")]


async def test_a_watch_fires_too_where_the_connection_went_with_the_answer(heard: Heard) -> None:
    """As after a pause of the process: all of it is told at one go. The ensemble has forgotten the
    watch by then, and nobody would ever hear of a change.
    """
    reading = await heard.watching()
    heard.answers("node")
    heard.enters(KazooState.SUSPENDED, KazooState.CONNECTED)
    assert await reading == "node"
    for _ in range(3):
        await asyncio.sleep(0)
    assert heard.events == [Event(Change.DATA, "/a")]


async def test_a_read_under_way_is_asked_again_and_sets_its_watch_itself(heard: Heard) -> None:
    reading = await heard.watching()
    heard.enters(KazooState.SUSPENDED, KazooState.CONNECTED)
    while len(heard.asked) < 2:
        await asyncio.sleep(0)
    heard.answers("node")
    assert await reading == "node"
    assert heard.events == []


async def test_without_a_connection_a_write_is_refused_at_once(heard: Heard) -> None:
    heard.enters(KazooState.SUSPENDED)
    await asyncio.sleep(0)
    with pytest.raises(ConnectionLostError):
        await heard.session.ask("write", "/a")
    assert heard.asked == []
