"""Transcripts: reassignments from start to end."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.controller.alter_partition import ProposedIsr, alter_partitions
from ottla.controller.deletion import TopicToDelete, delete_topics
from ottla.controller.plan import decided
from ottla.controller.reassignment import alter_reassignments, list_reassignments
from ottla.protocol.errors import ErrorCode

World = Any
Target = tuple[int, ...] | None


@pytest.fixture
def world(world: World) -> World:
    world.up(4)
    return world


def alter(world: World, target: Target, **more: Any) -> tuple[str, str | None]:
    wanted = {"t": {0: target}}
    plan = decided(alter_reassignments(wanted, world.image, world.config, **more))
    outcome = world.do(plan)["t"][0]
    return outcome.code.name, outcome.message


def in_sync(world: World, *isr: int) -> str:
    """The leader proposes this ISR."""
    topic = world.image.topics["t"]
    state = topic.partitions[0]
    epoch = world.image.brokers[state.leader].epoch
    proposal = ProposedIsr(
        topic.topic_id,
        0,
        state.leader_epoch,
        state.partition_epoch,
        tuple((broker, world.image.brokers[broker].epoch) for broker in isr),
    )
    plan = alter_partitions(state.leader, epoch, [proposal], world.image, world.config)
    return str(world.do(plan)[0].code.name)


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        # New replicas before old ones; adding and removing replicas are recorded.
        ("1@4 1,2,3 | 1,2,3", (4, 2, 3), "1@4 4,2,3,1 | 1,2,3 +4 -1"),
        ("1@4 1,2 | 1,2", (1, 2, 3), "1@4 1,2,3 | 1,2 +3"),
        ("1@4 1,2 | 1,2", (3, 4), "1@4 3,4,1,2 | 1,2 +3,4 -1,2"),
        # Nothing to copy: done at once.
        ("1@4 1,2,3 | 1,2,3", (3, 2, 1), "1@4 3,2,1 | 1,2,3"),
        ("1@4 1,2,3 | 1,2,3", (1, 2), "1@5 1,2 | 1,2"),
        ("1@4 1,2,3 | 1,2,3", (2, 3), "2@5 2,3 | 2,3"),
        # Fewer replicas, but a remaining one is not in sync: the removal waits.
        ("1@4 1,2,3 | 1,3", (2, 3), "1@4 2,3,1 | 1,3 -1"),
        # The same replicas.
        ("1@4 1,2,3 | 1,2,3", (1, 2, 3), "1@4 1,2,3 | 1,2,3"),
        # Another target during a reassignment: added replicas that it does not name are dropped.
        ("1@4 4,2,3,1 | 1,2,3 +4 -1", (3, 2, 1), "1@5 3,2,1 | 1,2,3"),
        ("1@4 3,1,2 | 1,2 +3 -2", (4, 1), "1@5 4,1,2 | 1,2 +4 -2"),
        ("3@4 3,1,2 | 1,2,3 +3 -1,2", (4, 1), "1@6 4,1,2 | 1,2 +4 -2"),
        # Cancelled.
        ("1@4 4,2,3,1 | 1,2,3 +4 -1", None, "1@5 2,3,1 | 1,2,3"),
        ("4@4 4,2,1 | 4,1,2 +4 -1", None, "2@6 2,1 | 1,2"),
    ],
)
def test_the_first_stage(world: World, before: str, target: Target, after: str) -> None:
    world.topic("t", before)
    assert alter(world, target) == ("none", None)
    assert world.show() == [after]


def test_all_stages(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    alter(world, (3, 4))
    assert in_sync(world, 1, 2, 3) == "none"
    assert world.show() == ["1@4 3,4,1,2 | 1,2,3 +3,4 -1,2"]
    # All added replicas are in sync; the leader is dropped, so another leads.
    assert in_sync(world, 1, 2, 3, 4) == "new_leader_elected"
    assert world.show() == ["3@5 3,4 | 3,4"]
    assert decided(list_reassignments(None, world.image)) == {}


def test_dropped_replicas_raise_the_leader_epoch(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    alter(world, (1, 3))
    assert in_sync(world, 1, 2, 3) == "none"
    assert world.show() == ["1@5 1,3 | 1,3"]


def test_an_election_during_a_reassignment(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    alter(world, (3, 4))
    in_sync(world, 1, 2, 3)
    world.down(1)
    # In assignment order: an added replica that is in sync leads like any other.
    assert world.show() == ["3@5 3,4,1,2 | 2,3 +3,4 -1,2"]
    assert in_sync(world, 2, 3, 4) == "none"
    assert world.show() == ["3@6 3,4 | 3,4"]


def test_an_offline_partition_is_not_completed(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    world.down(1, 2)
    assert alter(world, (1,)) == ("none", None)
    assert world.show() == ["-@5 1,2 | 1,2 -2"]
    world.up(1)
    assert world.show() == ["1@7 1 | 1"]


@pytest.mark.parametrize(
    ("before", "target", "code", "message"),
    [
        (
            "1@4 1,2 | 1,2",
            (1, 9),
            "invalid_replica_assignment",
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            "1@4 1,2 | 1,2",
            (1, 3, 1),
            "invalid_replica_assignment",
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            "1@4 1,2 | 1,2",
            (),
            "invalid_replica_assignment",
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            "1@4 1,2 | 1,2",
            (1, -1),
            "invalid_replica_assignment",
            "The manual partition assignment includes broker -1, but no such broker is registered.",
        ),
        (
            "1@4 1,2 | 1,2",
            None,
            "no_reassignment_in_progress",
            "No partition reassignment is in progress.",
        ),
        (
            "3@4 3,1 | 3 +3 -1",
            None,
            "invalid_replica_assignment",
            "Unable to revert partition assignment for t:0 because it would require an unclean "
            "leader election.",
        ),
    ],
)
def test_refusals(world: World, before: str, target: Target, code: str, message: str) -> None:
    world.topic("t", before)
    assert alter(world, target) == (code, message)
    assert world.show() == [before]


def test_a_reverted_reassignment_may_lose_records_if_allowed(world: World) -> None:
    world.topic("t", "3@4 3,1 | 3 +3 -1", unclean_leader_election_enable="true")
    assert alter(world, None) == ("none", None)
    assert world.show() == ["1@6 1 | 1"]


def test_a_change_of_the_replication_factor_can_be_refused(world: World) -> None:
    world.topic("t", "1@4 3,1,2 | 1,2 +3 -2")
    assert alter(world, (1, 2, 3), allow_factor_change=False) == (
        "invalid_replication_factor",
        "The replication factor is changed from 2 to 3",
    )
    assert alter(world, (3, 1), allow_factor_change=False)[0] == "none"


def test_unknown_partitions(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    wanted: dict[str, dict[int, Target]] = {"t": {1: (1,)}, "u": {0: None}}
    plan = decided(alter_reassignments(wanted, world.image, world.config))
    assert plan.reply["t"][1].message == "Unable to find partition t:1."
    assert plan.reply["u"][0].message == "Unable to find a topic named u."
    outcomes = [*plan.reply["t"].values(), *plan.reply["u"].values()]
    assert {each.code for each in outcomes} == {ErrorCode.unknown_topic_or_partition}
    assert plan.writes == ()


def test_a_dead_replica_may_stay_one(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    world.down(2)
    assert alter(world, (1, 2, 3)) == ("none", None)
    assert alter(world, (1, 3)) == ("none", None)
    assert world.show() == ["1@4 1,3,2 | 1 +3 -2"]


def test_lists(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2", "1@4 3,1,2 | 1,2 +3 -2")
    world.topic("u", "1@4 1,2 | 1,2")
    state = world.image.topics["t"].partitions[1]
    assert decided(list_reassignments(None, world.image)) == {"t": {1: state}}
    assert decided(list_reassignments({"t": [0, 1, 7, -1], "none": [0]}, world.image)) == {
        "t": {1: state}
    }
    assert decided(list_reassignments({"t": [0], "u": [0]}, world.image)) == {}


def test_a_topic_is_deleted_during_its_reassignment(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    alter(world, (3, 4))
    in_sync(world, 1, 2, 3)
    world.down(3)
    world.do(decided(delete_topics([TopicToDelete("t")], world.image, world.config)))
    assert world.image.topics == {}


@pytest.mark.parametrize("target", [(3, 4), (2,), (2, 1), None])
def test_whoever_stops_between_two_writes_leaves_what_can_go_on(
    world: World, target: Target
) -> None:
    world.topic("t", "1@4 4,1,2 | 1,2 +4 -2")
    plan = decided(alter_reassignments({"t": {0: target}}, world.image, world.config))
    for writes in range(len(plan.writes) + 1):
        other = world.after_crash(plan, writes)
        other.check()
        wanted = {"t": {0: target}} if decided(list_reassignments(None, other.image)) else {}
        other.do(decided(alter_reassignments(wanted, other.image, other.config)))
        state = other.image.topics["t"].partitions[0]
        assert state.leader in state.isr
        assert set(state.isr) <= set(state.replicas)
        origin = [b for b in state.replicas if b not in state.removing]
        assert sorted(origin) == sorted(target or (1, 2))
