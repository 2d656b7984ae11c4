from __future__ import annotations

from typing import Any

from ottla.controller.image import BrokerAppeared, BrokerImage, BrokerVanished, ClusterImage
from ottla.controller.returned_brokers import CATCH_UP_MS, SETTLED_MS, ReturnedBrokers

World = Any
INTERVAL_MS = 300_000


def _register(image: ClusterImage, broker_id: int, epoch: int) -> None:
    if broker_id in image.brokers:
        image.apply(BrokerVanished(broker_id))
    image.apply(BrokerAppeared(BrokerImage(broker_id, (), epoch=epoch)))


def test_a_broker_is_due_once_when_it_is_settled_and_in_sync(world: World) -> None:
    world.topic("t", "2@4 1,2 | 2", "2@4 2,1 | 1,2")
    returned = ReturnedBrokers(INTERVAL_MS)
    assert returned.due(world.image, 0) == frozenset()
    assert returned.due(world.image, SETTLED_MS - 1) == frozenset()
    others = world.image.brokers.keys() - {1}
    assert returned.due(world.image, SETTLED_MS) == others, "1 is not in sync"
    caught_up = type(world)()
    caught_up.image.brokers.update(world.image.brokers)
    caught_up.topic("t", "2@4 1,2 | 1,2", "2@4 2,1 | 1,2")
    assert returned.due(caught_up.image, SETTLED_MS + 1) == {1}
    assert returned.due(caught_up.image, SETTLED_MS + 2) == frozenset()


def test_a_broker_that_does_not_catch_up_gets_what_it_can_take(world: World) -> None:
    world.topic("t", "2@4 1,2 | 2")
    returned = ReturnedBrokers(INTERVAL_MS)
    returned.due(world.image, 0)
    assert 1 not in returned.due(world.image, CATCH_UP_MS - 1)
    assert 1 in returned.due(world.image, CATCH_UP_MS)


def test_a_broker_that_keeps_failing_waits_for_the_interval(world: World) -> None:
    world.topic("t", "2@4 1,2 | 1,2")
    returned = ReturnedBrokers(INTERVAL_MS)
    returned.due(world.image, 0)
    assert 1 in returned.due(world.image, SETTLED_MS)
    _register(world.image, 1, 100)
    returned.due(world.image, 5_000)
    assert 1 in returned.due(world.image, 5_000 + SETTLED_MS), "nothing was given back before"
    returned.gave_back({1}, 5_000 + SETTLED_MS)
    for epoch, at_ms, due in ((101, 10_000, False), (102, 20_000, False), (103, 400_000, True)):
        _register(world.image, 1, epoch)
        returned.due(world.image, at_ms)
        found = returned.due(world.image, at_ms + SETTLED_MS)
        assert (1 in found) == due, epoch
