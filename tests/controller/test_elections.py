from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ottla.controller.elections import ElectionType, elect_leaders
from ottla.controller.image import (
    NO_LEADER,
    BrokerVanished,
    ClusterImage,
    PartitionsChanged,
    PartitionState,
)
from ottla.controller.plan import decided
from ottla.controller.topics import NewTopic
from ottla.coordination.tree import SetData
from ottla.protocol.errors import ErrorCode


def state(leader: int, isr: tuple[int, ...]) -> PartitionState:
    return PartitionState(leader, 4, (1, 2, 3), isr, 9)


@pytest.fixture
def led(
    image: ClusterImage, add_topic: Callable[[NewTopic], None]
) -> Callable[[PartitionState], None]:
    """One topic whose only partition is in the given state."""
    add_topic(NewTopic("t", assignments=((0, (1, 2, 3)),)))

    def change(to: PartitionState) -> None:
        image.apply(PartitionsChanged(replace(image.topics["t"], partitions=(to,)), (0,)))

    return change


def test_no_election_if_the_preferred_leader_leads(
    image: ClusterImage, led: Callable[[PartitionState], None]
) -> None:
    plan = decided(elect_leaders(ElectionType.PREFERRED, {"t": [0, 0, 5], "none": [0]}, image))
    assert plan.reply["t"][0].code is ErrorCode.election_not_needed
    assert plan.reply["t"][5].code is ErrorCode.unknown_topic_or_partition
    assert plan.reply["t"][5].message == "No such partition as t-5"
    assert plan.reply["none"][0].message == "No such topic as none"
    assert plan.writes == ()


def test_for_all_partitions_the_reply_omits_those_that_need_no_election(
    image: ClusterImage, led: Callable[[PartitionState], None]
) -> None:
    for kind in ElectionType:
        assert decided(elect_leaders(kind, None, image)).reply == {"t": {}}


def test_the_preferred_leader_gets_the_next_epoch(
    image: ClusterImage, led: Callable[[PartitionState], None]
) -> None:
    led(state(2, (2, 1)))
    plan = decided(elect_leaders(ElectionType.PREFERRED, None, image))
    assert plan.reply == {"t": {0: (ErrorCode.none, None)}}
    (write,) = plan.writes
    assert isinstance(write, SetData)
    assert write.version == 9
    assert b'"leader":1,"leader_epoch":5,"controller_epoch":7,"isr":[2,1]' in write.data
    image.apply(plan.deltas[0])
    after = image.partition("t", 0)
    assert after == PartitionState(1, 5, (1, 2, 3), (2, 1), 10)


@pytest.mark.parametrize("gone", [True, False])
def test_the_preferred_leader_must_be_live_and_in_sync(
    image: ClusterImage, led: Callable[[PartitionState], None], gone: bool
) -> None:
    led(state(2, (2, 1) if gone else (2, 3)))
    if gone:
        image.apply(BrokerVanished(1))
    plan = decided(elect_leaders(ElectionType.PREFERRED, {"t": [0]}, image))
    assert plan.reply["t"][0].code is ErrorCode.preferred_leader_not_available
    assert plan.writes == ()


def test_an_unclean_election_takes_the_first_live_replica(
    image: ClusterImage, led: Callable[[PartitionState], None]
) -> None:
    led(state(NO_LEADER, (1,)))
    image.apply(BrokerVanished(1))
    plan = decided(elect_leaders(ElectionType.UNCLEAN, {"t": [0]}, image))
    assert plan.reply["t"][0].code is ErrorCode.none
    image.apply(plan.deltas[0])
    assert image.partition("t", 0) == PartitionState(2, 5, (1, 2, 3), (2,), 10)

    led(state(NO_LEADER, (1,)))
    image.apply(BrokerVanished(2))
    image.apply(BrokerVanished(3))
    plan = decided(elect_leaders(ElectionType.UNCLEAN, {"t": [0]}, image))
    assert plan.reply["t"][0].code is ErrorCode.eligible_leaders_not_available


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        # A broker that is shutting down is not elected, unless there is no other.
        (ElectionType.PREFERRED, "2@4 3,2 | 2,3", "2@4 3,2 | 2,3"),
        (ElectionType.UNCLEAN, "-@4 3,2,1 | 4", "2@5 3,2,1 | 2"),
        (ElectionType.UNCLEAN, "-@4 3 | 4", "-@4 3 | 4"),
        # An in-sync replica comes first, also in a requested election.
        (ElectionType.UNCLEAN, "-@4 1,2 | 2", "2@5 1,2 | 2"),
        (ElectionType.UNCLEAN, "-@4 1,2,4 | 2,4", "2@5 1,2,4 | 2"),
        # Every in-sync replica lost its disk.
        (ElectionType.UNCLEAN, "-@4 1,2 |", "1@5 1,2 | 1"),
        (ElectionType.UNCLEAN, "2@4 1,2 | 2", "2@4 1,2 | 2"),
        # Dead replicas leave the ISR.
        (ElectionType.PREFERRED, "-@4 1,2,4 | 1,4", "1@5 1,2,4 | 1"),
    ],
)
def test_requested_elections(world: Any, kind: ElectionType, before: str, after: str) -> None:
    world.topic("t", before)
    world.shutting_down = {3}
    world.do(
        decided(elect_leaders(kind, {"t": [0]}, world.image, shutting_down=world.shutting_down))
    )
    assert world.show() == [after]
