"""How a broker fetches metadata deltas from the controller and applies them."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cluster.metadata_log import KeptDelta
from ottla.controller.differences import differences
from ottla.controller.image import ControllerChanged, TopicCreated
from ottla.controller.topics import NewTopic
from ottla.network.peer import PeerError


async def test_deltas_arrive_while_the_controller_carries_out_plans(
    neighbours: Any, eventually: Any
) -> None:
    first, second = [await neighbours.start(number) for number in (1, 2)]
    await first.controller.create_topics([NewTopic("t", 3, 1)])
    await first.controller.create_topics([NewTopic("u", 1, 1)])
    await eventually(lambda: set(second.image.topics) == {"t", "u"})
    await eventually(lambda: differences(second.image, first.image) == [])


async def test_after_an_internal_error_a_snapshot_is_fetched(
    neighbours: Any,
    eventually: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("ottla.runtime.background.RESTART_AFTER_MS", 1)
    first, second = [await neighbours.start(number) for number in (1, 2)]
    bugs = [RuntimeError("a bug of ours")]

    def fail_once(delta: Any) -> None:
        if isinstance(delta, TopicCreated) and bugs:
            raise bugs.pop()

    second.view.subscribe(fail_once)
    await first.controller.create_topics([NewTopic("t", 3, 1), NewTopic("u", 1, 1)])
    await eventually(lambda: set(second.image.topics) == {"t", "u"})
    await eventually(lambda: differences(second.image, first.image) == [])
    assert "applying the controller's metadata deltas failed" in caplog.text
    assert not bugs


async def test_each_delta_is_applied_once(neighbours: Any, eventually: Any) -> None:
    first = await neighbours.start(1)
    second = await neighbours.start(2, live=False)
    received: list[str] = []
    second.view.subscribe(lambda delta: received.append(type(delta).__name__))
    for name in ("t", "u"):
        await first.controller.create_topics([NewTopic(name, 1, 1)])
        while name not in second.image.topics:
            assert await second.membership.fetcher.fetch_once(0)
    assert await second.membership.fetcher.fetch_once(0)
    assert received.count("TopicCreated") == 2


async def test_a_late_response_of_a_deposed_controller_is_ignored(neighbours: Any) -> None:
    first = await neighbours.start(1, live=False)
    second = await neighbours.start(2, live=False)
    await second.view.apply([ControllerChanged(3, 9)])
    await first.controller.create_topics([NewTopic("t", 1, 1)])
    assert not await second.membership.fetcher.fetch_once(0)
    assert second.image.topics == {}
    assert second.image.controller_id == 3


async def test_a_broker_that_is_not_the_controller_returns_no_deltas(neighbours: Any) -> None:
    first = await neighbours.start(1, live=False)
    second = await neighbours.start(2, live=False)
    first.controller.resign("for the test")
    assert not await second.membership.fetcher.fetch_once(0)
    assert not await second.membership.fetcher.ask_to_leave()


async def test_a_fetch_from_a_hanging_controller_ends_when_another_is_elected(
    neighbours: Any, eventually: Any
) -> None:
    await neighbours.start(1, live=False)
    second = await neighbours.start(2, live=False)
    fetcher, asked, dropped = second.membership.fetcher, [], asyncio.Event()
    real = second.peers.peer

    class Hanging:
        async def ask_json(self, key: int, document: Any, timeout_ms: int) -> Any:
            asked.append(document)
            await dropped.wait()
            raise PeerError("the connection to broker 1 is closed")

    second.peers.peer = lambda broker, purpose: Hanging() if broker == 1 else real(broker, purpose)
    second.peers.drop = lambda broker, purpose: dropped.set() if broker == 1 else None
    fetcher.start()
    await eventually(lambda: asked)
    fetcher.follow(2)
    assert dropped.is_set()
    assert fetcher.controller_id == 2


async def test_a_controller_that_refuses_connections_is_deposed(
    neighbours: Any, eventually: Any, refusing_address: tuple[str, int]
) -> None:
    await neighbours.start(1, live=False)
    second = await neighbours.start(2)
    neighbours.addresses[1] = refusing_address
    del neighbours.nodes[1]
    await eventually(lambda: second.controller.active)
    assert second.image.controller_epoch == 2
    # Its registration is deleted, too, and it leads nothing any more.
    await eventually(lambda: set(second.image.brokers) == {2})


async def test_the_address_of_an_unknown_controller_is_looked_up(neighbours: Any) -> None:
    """A broker that was the first controller for a moment knows no other broker."""
    first, second = [await neighbours.start(number, live=False) for number in (1, 2)]
    real, image = second.peers.peer, second.image

    async def unknown(key: int, document: Any, timeout_ms: int) -> Any:
        raise PeerError("broker 1 is not registered")

    second.peers.peer = lambda broker, purpose: (
        real(broker, purpose) if broker in image.brokers else SimpleNamespace(ask_json=unknown)
    )
    del image.brokers[1]
    assert not await second.membership.fetcher.fetch_once(0)
    assert image.brokers[1].epoch == first.registration.broker_epoch
    assert await second.membership.fetcher.fetch_once(0)


async def test_a_silent_controller_stays_the_controller(neighbours: Any) -> None:
    first = await neighbours.start(1, live=False)
    second = await neighbours.start(2, live=False)
    del neighbours.nodes[1]
    assert not await second.membership.fetcher.fetch_once(0)
    assert first.controller.active
    there = await second.membership.session.exists("/controller")
    assert there.owner == first.membership.session.number


async def test_pending_deltas_do_not_mix_with_an_election(neighbours: Any, eventually: Any) -> None:
    """A broker becomes the controller while it applies deltas of the former one."""
    first = await neighbours.start(1, live=False)
    second = await neighbours.start(2, live=False)
    session, fetcher = second.membership.session, second.membership.fetcher
    for name in ("t", "u"):
        await first.controller.create_topics([NewTopic(name, 1, 1)])
    may_go_on = asyncio.Event()
    received: list[str] = []

    async def slow(piece: Any) -> None:
        received.append(type(piece).__name__)
        if isinstance(piece, TopicCreated):
            await may_go_on.wait()

    second.view.subscribe(slow)
    fetching = asyncio.create_task(fetcher.fetch_once(0))
    await eventually(lambda: "TopicCreated" in received)
    await first.controller.create_topics([NewTopic("v", 1, 1)])
    fetcher.follow(2)
    leading = asyncio.create_task(second.controller.lead(session, overtaken=lambda: None))
    await asyncio.sleep(0.05)
    assert not leading.done()
    may_go_on.set()
    await asyncio.gather(fetching, leading)
    assert set(second.image.topics) == {"t", "u", "v"}
    assert received.count("TopicCreated") == 3
    assert (second.image.controller_id, second.image.controller_epoch) == (2, 2)


async def test_invalid_deltas_are_replaced_by_a_snapshot(
    neighbours: Any, caplog: pytest.LogCaptureFixture
) -> None:
    first = await neighbours.start(1)
    second = await neighbours.start(2, live=False)
    fetcher = second.membership.fetcher
    assert await fetcher.fetch_once(0)
    await first.controller.create_topics([NewTopic("t", 1, 1)])
    strange = ["changed", "nowhere", "00" * 16, 1, [], [], []]
    first.controller.metadata_log._kept.append(KeptDelta(first.image.version, strange))
    first.controller.metadata_log._kept.popleft()
    assert not await fetcher.fetch_once(0)
    assert "invalid metadata deltas" in caplog.text
    assert await fetcher.fetch_once(0)
    assert differences(second.image, first.image) == []


async def test_deltas_of_another_cluster_are_ignored(
    neighbours: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker of another cluster listens at our controller's address."""
    first = await neighbours.start(1)
    await first.controller.create_topics([NewTopic("t", 1, 1)])
    second = await neighbours.start(2, live=False)
    await first.controller.create_topics([NewTopic("u", 1, 1)])
    first.image.cluster_id = "another"
    second.membership.fetcher._version = -1
    for _ in range(2):
        assert not await second.membership.fetcher.fetch_once(0)
    assert set(second.image.topics) == {"t"}
    assert caplog.text.count("they belong to cluster another") == 1
