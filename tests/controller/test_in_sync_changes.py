"""What a leader may propose, and the answers (the table is Kafka's order of checks)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.controller.controlled_shutdown import controlled_shutdown
from ottla.controller.in_sync_changes import ANY_EPOCH, ProposedIsr, alter_partitions
from ottla.protocol.errors import ApiError, ErrorCode

World = Any


def propose(world: World, sender: int, *wishes: ProposedIsr) -> list[str]:
    epoch = world.image.brokers[sender].epoch
    plan = alter_partitions(
        sender, epoch, wishes, world.image, world.config, shutting_down=world.shutting_down
    )
    return [answer.code.name for answer in world.do(plan)]


def wish(
    world: World,
    isr: dict[int, int],
    *,
    partition: int = 0,
    leader_epoch: int = 4,
    partition_epoch: int = 0,
) -> ProposedIsr:
    """`isr` by broker: how far the epoch that is given is off the right one."""
    brokers = world.image.brokers
    epochs = tuple(
        (each, ANY_EPOCH if off == ANY_EPOCH else brokers[each].epoch + off)
        if each in brokers
        else (each, 5)
        for each, off in isr.items()
    )
    return ProposedIsr(UUID(int=1), partition, leader_epoch, partition_epoch, epochs)


@pytest.mark.parametrize(
    ("isr", "after"),
    [
        ({1: 0, 2: 0, 3: 0}, "1@4 1,2,3 | 1,2,3"),
        ({1: 0}, "1@4 1,2,3 | 1"),
        ({3: 0, 1: 0}, "1@4 1,2,3 | 3,1"),
        ({1: 0, 3: ANY_EPOCH}, "1@4 1,2,3 | 1,3"),
    ],
)
def test_the_leader_shrinks_and_grows(world: World, isr: dict[int, int], after: str) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2")
    assert propose(world, 1, wish(world, isr)) == ["none"]
    assert world.show() == [after]
    assert world.image.topics["t"].partitions[0].partition_epoch == 1


@pytest.mark.parametrize(
    ("sender", "isr", "more", "code"),
    [
        (1, {1: 0}, {"partition": 1}, "unknown_topic_or_partition"),
        (1, {1: 0}, {"partition": -1}, "unknown_topic_or_partition"),
        # The leader knows more than this controller.
        (1, {1: 0}, {"leader_epoch": 5}, "not_controller"),
        (1, {1: 0}, {"partition_epoch": 1}, "not_controller"),
        (1, {1: 0}, {"leader_epoch": 3}, "fenced_leader_epoch"),
        (2, {2: 0}, {}, "invalid_request"),
        # Itself left out, nobody, a stranger, twice the same.
        (1, {2: 0}, {}, "invalid_request"),
        (1, {}, {}, "invalid_request"),
        (1, {1: 0, 4: 0}, {}, "invalid_request"),
        # Dead, or in another life than the leader thinks, or about to leave.
        (1, {1: 0, 3: 1}, {}, "ineligible_replica"),
        (1, {1: 0, 5: 0}, {}, "ineligible_replica"),
        (1, {1: 0, 2: 0}, {}, "ineligible_replica"),
    ],
)
def test_refusals(
    world: World, sender: int, isr: dict[int, int], more: dict[str, int], code: str
) -> None:
    world.topic("t", "1@4 1,2,3,5 | 1,3")
    world.shutting_down = {2}
    assert propose(world, sender, wish(world, isr, **more)) == [code]
    assert world.show() == ["1@4 1,2,3,5 | 1,3"]


def test_an_older_partition_epoch_is_answered_so(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2")
    assert propose(world, 1, wish(world, {1: 0})) == ["none"]
    assert propose(world, 1, wish(world, {1: 0, 2: 0})) == ["invalid_update_version"]


def test_a_batch_stands_on_itself(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2", "1@4 1,2 | 1")
    unknown = ProposedIsr(UUID(int=9), 0, 0, 0, ())
    wishes = [
        wish(world, {1: 0}),
        wish(world, {1: 0, 2: 0}),
        wish(world, {1: 0, 2: 0}, partition=1),
        unknown,
    ]
    assert propose(world, 1, *wishes) == [
        "none",
        "invalid_update_version",
        "none",
        "unknown_topic_id",
    ]
    assert world.show() == ["1@4 1,2 | 1", "1@4 1,2 | 1,2"]


def test_the_same_again_is_no_write(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2")
    plan = alter_partitions(
        1,
        world.image.brokers[1].epoch,
        [wish(world, {1: 0, 2: 0})],
        world.image,
        world.config,
    )
    assert plan.writes == ()
    assert plan.reply[0].state == world.image.topics["t"].partitions[0]


def test_the_answer_has_the_state_that_was_written(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2")
    epoch = world.image.brokers[1].epoch
    plan = alter_partitions(1, epoch, [wish(world, {1: 0})], world.image, world.config)
    world.do(plan)
    assert plan.reply[0].state == world.image.topics["t"].partitions[0]


def test_a_former_life_and_a_stranger_are_refused_whole(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2")
    wishes = [wish(world, {1: 0})]
    epoch = world.image.brokers[1].epoch
    with pytest.raises(ApiError) as caught:
        alter_partitions(1, epoch - 1, wishes, world.image, world.config)
    assert caught.value.code is ErrorCode.stale_broker_epoch
    with pytest.raises(ApiError) as caught:
        alter_partitions(9, 1, wishes, world.image, world.config)
    assert caught.value.code is ErrorCode.broker_id_not_registered


def test_a_leader_that_shuts_down_lets_in_who_can_take_over(world: World) -> None:
    """Only it is in sync, so it waits: for a follower that has caught up meanwhile."""
    world.topic("t", "1@4 1,2,3 | 1")
    world.shutting_down.add(1)
    assert propose(world, 1, wish(world, {1: 0, 2: 0})) == ["none"]
    world.do(controlled_shutdown(1, world.image, shutting_down=world.shutting_down))
    assert world.show() == ["2@5 1,2,3 | 2"]
