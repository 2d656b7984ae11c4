"""Transcripts: a broker shuts down in a controlled way."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.controller.controlled_shutdown import controlled_shutdown

World = Any


def leave(world: World, broker: int) -> Any:
    world.shutting_down.add(broker)
    return world.do(controlled_shutdown(broker, world.image, shutting_down=world.shutting_down))


@pytest.mark.parametrize(
    ("before", "after", "stays"),
    [
        ("1@4 1,2,3 | 1,2,3", "2@5 1,2,3 | 2,3", False),
        ("2@4 1,2,3 | 1,2,3", "2@4 1,2,3 | 2,3", False),
        ("2@4 1,2,3 | 2,3", "2@4 1,2,3 | 2,3", False),
        # No other replica is in sync: it goes on leading, and may not stop yet.
        ("1@4 1,2,3 | 1", "1@4 1,2,3 | 1", True),
        # No other replica can ever be in sync.
        ("1@4 1 | 1", "1@4 1 | 1", False),
    ],
)
def test_leadership_moves(world: World, before: str, after: str, stays: bool) -> None:
    world.topic("t", before)
    reply = leave(world, 1)
    assert world.show() == [after]
    assert reply.remaining == ((("t", 0),) if stays else ())
    assert reply.may_shut_down is not stays


def test_two_brokers_shut_down_at_once(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2", "1@4 1,2,3 | 1,2,3")
    assert leave(world, 1).elections == (("t", 0, 1, 2, 5, False), ("t", 1, 1, 2, 5, False))
    reply = leave(world, 2)
    assert world.show() == ["2@5 1,2 | 2", "3@6 1,2,3 | 3"]
    # Both shut down: neither could take over the remaining partitions.
    assert reply.may_shut_down


def test_it_waits_for_a_replica_that_can_still_catch_up(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1")
    world.down(2)
    assert leave(world, 1).remaining == (("t", 0),)
    assert leave(world, 3).may_shut_down
    assert leave(world, 1).may_shut_down


def test_the_remaining_partitions_go_offline_and_return(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    leave(world, 1)
    leave(world, 2)
    world.down(1, 2)
    assert world.show() == ["-@6 1,2 | 2"]
    world.shutting_down.clear()
    world.up(1)
    assert world.show() == ["-@6 1,2 | 2"]
    world.up(2)
    assert world.show() == ["2@7 1,2 | 2"]


def test_an_offline_partition_does_not_delay_it(world: World) -> None:
    world.topic("t", "-@4 1,2 | 2")
    world.down(2)
    assert leave(world, 1).may_shut_down
