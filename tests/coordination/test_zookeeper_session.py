"""How a session handles the events of kazoo's thread, without an ensemble."""

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


class ConnectedSession:
    """A connected session, and its requests to the ensemble."""

    def __init__(self) -> None:
        self.session = ZooKeeperSession("127.0.0.1:1", "", 10_000)
        self.asked: list[Answer] = []
        client: Any = self.session._client
        client.ask = lambda request, answer: self.asked.append(answer)
        self.events: list[Event] = []

    def enters(self, *states: str) -> None:
        for state in states:
            self.session._post(self.session._entered, state, CLIENT_ID)

    def answers(self, value: Any) -> None:
        self.asked[-1].set(value)

    async def watching(self) -> asyncio.Task[Any]:
        """A pending read with a watch."""
        watched = self.session.watched(
            lambda watcher: "read", "/a", self.session.data_watches, self.events.append
        )
        reading = asyncio.create_task(watched)
        while not self.asked:
            await asyncio.sleep(0)
        return reading


@pytest.fixture
async def connected() -> AsyncIterator[ConnectedSession]:
    made = ConnectedSession()
    made.enters(KazooState.CONNECTED)
    await asyncio.sleep(0)
    assert made.session.state is State.CONNECTED
    yield made
    made.session._over()


async def test_a_watch_fires_after_a_reconnection(connected: ConnectedSession) -> None:
    reading = await connected.watching()
    connected.answers("node")
    assert await reading == "node"
    connected.enters(KazooState.SUSPENDED, KazooState.CONNECTED)
    await asyncio.sleep(0)
    assert connected.events == [Event(Change.DATA, "/a")]


async def test_a_watch_fires_if_the_connection_is_lost_with_the_response(
    connected: ConnectedSession,
) -> None:
    """As after a pause of the process: all events arrive at once. The ensemble has dropped the
    watch by then, so it would never fire.
    """
    reading = await connected.watching()
    connected.answers("node")
    connected.enters(KazooState.SUSPENDED, KazooState.CONNECTED)
    assert await reading == "node"
    for _ in range(3):
        await asyncio.sleep(0)
    assert connected.events == [Event(Change.DATA, "/a")]


async def test_a_pending_read_is_repeated_and_sets_its_watch(connected: ConnectedSession) -> None:
    reading = await connected.watching()
    connected.enters(KazooState.SUSPENDED, KazooState.CONNECTED)
    while len(connected.asked) < 2:
        await asyncio.sleep(0)
    connected.answers("node")
    assert await reading == "node"
    assert connected.events == []


async def test_without_a_connection_a_write_fails_at_once(connected: ConnectedSession) -> None:
    connected.enters(KazooState.SUSPENDED)
    await asyncio.sleep(0)
    with pytest.raises(ConnectionLostError):
        await connected.session.ask("write", "/a")
    assert connected.asked == []
