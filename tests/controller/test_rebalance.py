from __future__ import annotations

from typing import Any

from ottla.config.broker import BrokerConfig
from ottla.controller.rebalance import rebalance

World = Any


def run(world: World) -> list[int]:
    """The partitions that were given back."""
    plan = rebalance(world.image, world.config, shutting_down=world.shutting_down)
    return [election.partition for election in world.do(plan)]


def test_a_broker_gets_its_partitions_back(world: World) -> None:
    world.topic("t", "2@4 1,2 | 1,2", "2@4 2,1 | 1,2", "3@4 3,1 | 1,3")
    assert run(world) == [0]
    assert world.show()[0] == "1@5 1,2 | 1,2"
    assert run(world) == []


def test_a_small_imbalance_is_ignored(world: World) -> None:
    world.topic("t", *["1@4 1,2 | 1,2"] * 9, "2@4 1,2 | 1,2")
    assert run(world) == []
    world.config = BrokerConfig({"leader.imbalance.per.broker.percentage": "9"})
    assert run(world) == [9]


def test_only_partitions_that_the_preferred_leader_can_take(world: World) -> None:
    world.topic(
        "t",
        "2@4 1,2 | 2",
        "2@4 3,1,2 | 1,2,3 +3",
        "-@4 1,2 | 1",
        "3@4 2,3 | 2,3",
        "1@4 4,1 | 1",
    )
    world.shutting_down = {2}
    assert run(world) == []
