"""Which proposals are accepted, and the answers (the table has Kafka's order of checks)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.controller.alter_partition import ANY_EPOCH, ProposedIsr, alter_partitions
from ottla.controller.controlled_shutdown import controlled_shutdown
from ottla.protocol.errors import ApiError, ErrorCode

World = Any


def propose(world: World, sender: int, *proposals: ProposedIsr) -> list[str]:
    epoch = world.image.brokers[sender].epoch
    plan = alter_partitions(
        sender, epoch, proposals, world.image, world.config, shutting_down=world.shutting_down
    )
    return [answer.code.name for answer in world.do(plan)]


def proposal(
    world: World,
    isr: dict[int, int],
    *,
    partition: int = 0,
    leader_epoch: int = 4,
    partition_epoch: int = 0,
) -> ProposedIsr:
    """`isr` by broker: the offset of its epoch from the right one."""
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
def test_the_leader_shrinks_and_expands_the_isr(
    world: World, isr: dict[int, int], after: str
) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2")
    assert propose(world, 1, proposal(world, isr)) == ["none"]
    assert world.show() == [after]
    assert world.image.topics["t"].partitions[0].partition_epoch == 1


@pytest.mark.parametrize(
    ("sender", "isr", "more", "code"),
    [
        (1, {1: 0}, {"partition": 1}, "unknown_topic_or_partition"),
        (1, {1: 0}, {"partition": -1}, "unknown_topic_or_partition"),
        # The leader has newer state than this controller.
        (1, {1: 0}, {"leader_epoch": 5}, "not_controller"),
        (1, {1: 0}, {"partition_epoch": 1}, "not_controller"),
        (1, {1: 0}, {"leader_epoch": 3}, "fenced_leader_epoch"),
        (2, {2: 0}, {}, "invalid_request"),
        # Without itself, empty, with an unknown broker, with a duplicate.
        (1, {2: 0}, {}, "invalid_request"),
        (1, {}, {}, "invalid_request"),
        (1, {1: 0, 4: 0}, {}, "invalid_request"),
        # Dead, in another incarnation than the leader assumes, or shutting down.
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
    assert propose(world, sender, proposal(world, isr, **more)) == [code]
    assert world.show() == ["1@4 1,2,3,5 | 1,3"]


def test_an_older_partition_epoch_is_refused(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2")
    assert propose(world, 1, proposal(world, {1: 0})) == ["none"]
    assert propose(world, 1, proposal(world, {1: 0, 2: 0})) == ["invalid_update_version"]


def test_later_proposals_build_on_earlier_ones(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2", "1@4 1,2 | 1")
    unknown = ProposedIsr(UUID(int=9), 0, 0, 0, ())
    proposals = [
        proposal(world, {1: 0}),
        proposal(world, {1: 0, 2: 0}),
        proposal(world, {1: 0, 2: 0}, partition=1),
        unknown,
    ]
    assert propose(world, 1, *proposals) == [
        "none",
        "invalid_update_version",
        "none",
        "unknown_topic_id",
    ]
    assert world.show() == ["1@4 1,2 | 1", "1@4 1,2 | 1,2"]


def test_an_unchanged_isr_is_not_written(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2")
    plan = alter_partitions(
        1,
        world.image.brokers[1].epoch,
        [proposal(world, {1: 0, 2: 0})],
        world.image,
        world.config,
    )
    assert plan.writes == ()
    assert plan.reply[0].state == world.image.topics["t"].partitions[0]


def test_the_answer_has_the_state_that_was_written(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2")
    epoch = world.image.brokers[1].epoch
    plan = alter_partitions(1, epoch, [proposal(world, {1: 0})], world.image, world.config)
    world.do(plan)
    assert plan.reply[0].state == world.image.topics["t"].partitions[0]


def test_earlier_incarnations_and_unknown_brokers_are_refused(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2")
    proposals = [proposal(world, {1: 0})]
    epoch = world.image.brokers[1].epoch
    with pytest.raises(ApiError) as caught:
        alter_partitions(1, epoch - 1, proposals, world.image, world.config)
    assert caught.value.code is ErrorCode.stale_broker_epoch
    with pytest.raises(ApiError) as caught:
        alter_partitions(9, 1, proposals, world.image, world.config)
    assert caught.value.code is ErrorCode.broker_id_not_registered


def test_a_leader_that_shuts_down_may_add_a_follower(world: World) -> None:
    """Only the leader is in sync, so it waits for a follower to catch up."""
    world.topic("t", "1@4 1,2,3 | 1")
    world.shutting_down.add(1)
    assert propose(world, 1, proposal(world, {1: 0, 2: 0})) == ["none"]
    world.do(controlled_shutdown(1, world.image, shutting_down=world.shutting_down))
    assert world.show() == ["2@5 1,2,3 | 2"]
