"""What a broker remembers of elections."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from ottla.cluster.cluster_view import ClusterView
from ottla.cluster.last_elections import MAX_CONTROLLERS, MAX_ELECTIONS, LastElections
from ottla.config import BrokerConfig
from ottla.config.listener import Endpoint
from ottla.controller.elected import Why
from ottla.controller.image import (
    BrokerAppeared,
    BrokerImage,
    BrokerVanished,
    ControllerChanged,
    PartitionsChanged,
    PartitionState,
    TopicCreated,
    TopicImage,
)

LED_BY_1 = PartitionState(1, 4, (1, 2), (1, 2), 0)


def topic(*states: PartitionState) -> TopicImage:
    return TopicImage("t", UUID(int=1), states, {})


def broker(number: int) -> BrokerImage:
    return BrokerImage(number, (Endpoint("PLAINTEXT", "h", 9092),))


class Broker:
    """A view whose elections are remembered; time passes only when it is told to."""

    def __init__(self, *states: PartitionState) -> None:
        self.now_ms = 1000
        clock: Any = SimpleNamespace(now_ms=lambda: self.now_ms, monotonic_ms=lambda: self.now_ms)
        self.stopping: set[int] = set()
        self.view = ClusterView(BrokerConfig())
        self.seen = LastElections(self.view.image, clock, lambda: self.stopping)
        self.view.observe(self.seen.before)
        self.states = states

    async def begin(self) -> None:
        appeared = [BrokerAppeared(broker(number)) for number in (1, 2)]
        await self.view.apply([*appeared, TopicCreated(topic(*self.states))])

    async def lead(self, leader: int, *before: Any) -> None:
        """Of all partitions, in the same change as those before it."""
        self.states = tuple(
            each._replace(leader=leader, leader_epoch=each.leader_epoch + 1) for each in self.states
        )
        numbers = tuple(range(len(self.states)))
        await self.view.apply([*before, PartitionsChanged(topic(*self.states), numbers)])

    @property
    def why(self) -> list[tuple[int, Why]]:
        return [(at_ms, each.why) for at_ms, each in self.seen.newest()]


async def test_elections_are_seen_with_time_and_reason() -> None:
    seen = Broker(LED_BY_1)
    await seen.begin()
    seen.now_ms += 10
    await seen.lead(2, BrokerVanished(1))
    seen.now_ms += 10
    await seen.lead(1, BrokerAppeared(broker(1)))
    seen.now_ms += 5000
    seen.stopping.add(1)
    await seen.lead(2)
    # Another process of the leader: it goes and comes in one change.
    seen.now_ms += 5000
    await seen.lead(1, BrokerVanished(2), BrokerAppeared(broker(2)))
    assert seen.why == [
        (11_020, Why.RESTARTED),
        (6_020, Why.STOPS),
        (1_020, Why.PREFERRED),
        (1_010, Why.DOWN),
    ]
    assert (seen.seen.count, seen.seen.since_ms) == (4, 1000)


async def test_controllers_are_remembered() -> None:
    seen = Broker()
    for epoch in range(1, MAX_CONTROLLERS + 5):
        seen.now_ms += 1
        await seen.view.apply([ControllerChanged(epoch % 3, epoch)])
    # The same again, as a broker learns it with a snapshot.
    await seen.view.apply([ControllerChanged(epoch % 3, epoch)])
    assert len(seen.seen.controllers) == MAX_CONTROLLERS
    assert seen.seen.controllers[-1] == (seen.now_ms, epoch % 3, epoch)


async def test_no_more_than_the_newest_are_kept() -> None:
    seen = Broker(*([LED_BY_1] * (MAX_ELECTIONS + 50)))
    await seen.begin()
    await seen.lead(2)
    kept = [each.partition for _, each in seen.seen.newest()]
    assert kept == list(range(MAX_ELECTIONS + 49, 49, -1))
    assert seen.seen.count == MAX_ELECTIONS + 50
