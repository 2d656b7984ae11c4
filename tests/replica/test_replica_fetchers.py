"""Which fetcher has which partition, from one leader to the next."""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from tests.replica.fetch_config import fetch_config

from ottla.controller.image import PartitionState
from ottla.log.leader_epochs import LeaderEpochs
from ottla.replica.replica_fetchers import ReplicaFetchers, leader_throttle
from ottla.runtime.clock import SystemClock


class Peers:
    """Fake connections that never answer."""

    def __init__(self) -> None:
        self.open: set[tuple[int, str]] = set()
        self.asked: dict[int, int] = {}
        self.bugs = 0
        """How many of the next requests hit a bug of ours."""

    def peer(self, broker_id: int, purpose: str) -> Any:
        self.open.add((broker_id, purpose))

        async def ask(request: Any, timeout_ms: int) -> Any:
            self.asked[broker_id] = self.asked.get(broker_id, 0) + 1
            if self.bugs:
                self.bugs -= 1
                raise RuntimeError("a bug of ours")
            await asyncio.Event().wait()

        return SimpleNamespace(ask=ask)

    def drop(self, broker_id: int, purpose: str) -> None:
        self.open.remove((broker_id, purpose))


def new_node(fetchers: int = 1) -> Any:
    config = fetch_config(
        num_replica_fetchers=fetchers,
        follower_replication_throttled_rate=1 << 62,
        leader_replication_throttled_rate=10,
        replication_quota_window_num=11,
        replication_quota_window_size_seconds=1,
    )
    return SimpleNamespace(config=config, clock=SystemClock(), peers=Peers())


def fetchers_of(node: Any) -> ReplicaFetchers:
    return ReplicaFetchers(
        node.config,
        node.clock,
        node.peers,
        broker_epoch=lambda: 77,
        truncated=lambda *truncated: None,
    )


def partition(index: int, leader: int) -> Any:
    epochs = LeaderEpochs("/nowhere")
    return SimpleNamespace(
        topic="t",
        index=index,
        topic_id=UUID(int=8),
        leader_epoch=1,
        log=SimpleNamespace(end_offset=0, start_offset=0, epochs=epochs, loading=None),
        state=PartitionState(leader, 1, (1, leader), (leader,), 1),
    )


async def test_a_fetcher_lives_as_long_as_it_has_partitions() -> None:
    node = new_node()
    fetchers = fetchers_of(node)
    first, second = partition(0, 2), partition(1, 2)
    fetchers.follow(first)
    fetchers.follow(second)
    assert node.peers.open == {(2, "fetcher-0")}
    assert len(fetchers) == 2
    fetchers.unfollow(first)
    assert node.peers.open == {(2, "fetcher-0")}
    fetchers.unfollow(second)
    fetchers.unfollow(second)
    assert node.peers.open == set()
    assert len(fetchers) == 0
    await fetchers.close()


async def test_a_new_leader_means_another_fetcher() -> None:
    node = new_node()
    fetchers = fetchers_of(node)
    moved = partition(0, 2)
    fetchers.follow(moved)
    moved.state = PartitionState(3, 2, (1, 2, 3), (3,), 2)
    fetchers.follow(moved)
    assert node.peers.open == {(3, "fetcher-0")}
    await asyncio.sleep(0.01)
    assert node.peers.asked[3] == 1
    await fetchers.close()
    assert node.peers.open == set()
    fetchers.follow(moved)
    assert len(fetchers) == 0


async def test_a_fetcher_that_fails_is_logged_and_restarts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, eventually: Any
) -> None:
    monkeypatch.setattr("ottla.replica.replica_fetchers.RESTART_AFTER_MS", 1)
    node = new_node()
    node.peers.bugs = 2
    fetchers = fetchers_of(node)
    fetchers.follow(partition(0, 2))
    await eventually(lambda: node.peers.asked.get(2) == 3)
    assert caplog.text.count("copying from broker 2 failed; restarting in 1 ms") == 2
    assert "RuntimeError: a bug of ours" in caplog.text
    await fetchers.close()


async def test_a_failed_fetcher_without_partitions_does_not_restart(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, eventually: Any
) -> None:
    monkeypatch.setattr("ottla.replica.replica_fetchers.RESTART_AFTER_MS", 20)
    node = new_node()
    node.peers.bugs = 1
    fetchers = fetchers_of(node)
    mine = partition(0, 2)
    fetchers.follow(mine)
    await eventually(lambda: "failed" in caplog.text)
    fetchers.unfollow(mine)
    await asyncio.sleep(0.05)
    assert node.peers.asked[2] == 1
    assert node.peers.open == set()
    await fetchers.close()


async def test_partitions_are_spread_over_the_fetchers_of_a_leader() -> None:
    node = new_node(fetchers=2)
    fetchers = fetchers_of(node)
    for index in range(4):
        fetchers.follow(partition(index, 2))
    assert node.peers.open == {(2, "fetcher-0"), (2, "fetcher-1")}
    await fetchers.close()


async def test_another_number_of_fetchers_moves_the_partitions() -> None:
    """As in AbstractFetcherManager.resizeThreadPool: at once, not at the next election."""
    node = new_node(fetchers=1)
    fetchers = fetchers_of(node)
    for index in range(4):
        fetchers.follow(partition(index, 2))
    for number in (3, 1):
        node.config.num_replica_fetchers = number
        await fetchers.resize()
        assert node.peers.open == {(2, f"fetcher-{each}") for each in range(number)}
        assert len(fetchers) == 4
    await fetchers.close()
    assert node.peers.open == set()


def test_the_leaders_throttle_has_the_brokers_rate() -> None:
    node = new_node()
    throttle = leader_throttle(node.config, node.clock)
    throttle.configure("t", ("*",))
    throttle.record("t", 0, 1_000)
    assert throttle.holds("t", 0)
