"""Transcripts: what brokers do, and what becomes of partitions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from ottla.controller import broker_changes
from ottla.controller.broker_changes import brokers_changed
from ottla.controller.image import (
    BrokerAppeared,
    BrokerVanished,
    DirectoryChanged,
    PartitionsChanged,
    PartitionState,
    TopicCreated,
    TopicImage,
)
from ottla.controller.plan import Plan
from ottla.coordination.tree import SetData

World = Any
"""The class of the fixture `world`; see conftest.py."""


@pytest.mark.parametrize(
    ("before", "gone", "after"),
    [
        # The leader dies: the first live in-sync replica in assignment order leads.
        ("1@4 1,2,3 | 1,2,3", (1,), "2@5 1,2,3 | 2,3"),
        ("1@4 1,2,3 | 3,1,2", (1,), "2@5 1,2,3 | 3,2"),
        ("1@4 1,2,3 | 1,3", (1,), "3@5 1,2,3 | 3"),
        # A follower dies: the leader stays, in its epoch.
        ("1@4 1,2,3 | 1,2,3", (2,), "1@4 1,2,3 | 1,3"),
        # One that was not in sync dies: nothing to do.
        ("1@4 1,2,3 | 1,3", (2,), "1@4 1,2,3 | 1,3"),
        # Two die in one event.
        ("1@4 1,2,3 | 1,2,3", (1, 2), "3@5 1,2,3 | 3"),
        ("1@4 1,2,3 | 1,2,3", (2, 3), "1@4 1,2,3 | 1"),
        # All in-sync replicas die together: all stay in sync, nobody leads.
        ("1@4 1,2,3 | 1,2", (1, 2), "-@5 1,2,3 | 1,2"),
        ("1@4 1,2,3 | 1,2,3", (1, 2, 3), "-@5 1,2,3 | 1,2,3"),
        ("1@4 1 | 1", (1,), "-@5 1 | 1"),
        # Offline already: nothing changes by another death.
        ("-@5 1,2,3 | 1", (2,), "-@5 1,2,3 | 1"),
    ],
)
def test_brokers_vanish(world: World, before: str, gone: tuple[int, ...], after: str) -> None:
    if before.startswith("-"):
        world.down(1)
    world.topic("t", before)
    reply = world.down(*gone)
    assert world.show() == [after]
    assert reply.vanished == gone
    assert all(not election.unclean for election in reply.elections)


def test_any_replica_that_was_in_sync_leads_when_it_is_back(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2")
    world.down(1, 2)
    assert world.show() == ["-@5 1,2,3 | 1,2"]
    assert world.up(3).elections == ()
    assert world.show() == ["-@5 1,2,3 | 1,2"]
    assert world.up(2).elections == (("t", 0, -1, 2, 6, False),)
    assert world.show() == ["2@6 1,2,3 | 2"]
    assert world.up(1).elections == ()
    assert world.show() == ["2@6 1,2,3 | 2"]


@pytest.mark.parametrize(
    ("before", "again", "after"),
    [
        # The leader comes back in another life before its death was seen.
        ("1@4 1,2,3 | 1,2,3", (1,), "2@5 1,2,3 | 2,3"),
        ("1@4 1,2,3 | 1,2,3", (2,), "1@4 1,2,3 | 1,3"),
        # It was the only one in sync: it leads again, in a new epoch.
        ("1@4 1,2,3 | 1", (1,), "1@5 1,2,3 | 1"),
        # All that were in sync did: each has all that was committed.
        ("1@4 1,2,3 | 1,2", (1, 2), "1@5 1,2,3 | 1,2"),
        ("2@4 1,2,3 | 2,1", (1, 2), "1@5 1,2,3 | 2,1"),
    ],
)
def test_bounced_brokers(world: World, before: str, again: tuple[int, ...], after: str) -> None:
    world.topic("t", before)
    reply = world.up(*again)
    assert reply.bounced == again
    assert (reply.vanished, reply.appeared) == ((), ())
    assert world.show() == [after]


def test_who_only_registers_again_leads_on_in_the_same_epoch(world: World) -> None:
    """Once, twice, and found out by a new controller."""
    world.topic("t", "1@4 1,2,3 | 1,2,3")
    for _ in range(2):
        reply = world.again(1, 2)
        assert (reply.vanished, reply.appeared, reply.bounced) == ((), (), ())
        assert world.show() == ["1@4 1,2,3 | 1,2,3"]
    other = world.after_crash(Plan(None), 0)
    assert other.again(1, 3).bounced == ()
    assert other.show() == ["1@4 1,2,3 | 1,2,3"]


def test_who_registers_again_after_somebody_acted_on_its_absence_follows(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2,3")
    former = world.live[1]
    world.down(1)
    world.live[1] = former
    assert world.again(1).elections == ()
    assert world.show() == ["2@5 1,2,3 | 2,3"]


def test_who_began_anew_and_then_registered_again_is_in_a_new_life(world: World) -> None:
    """No controller saw the first registration of this process."""
    world.topic("t", "1@4 1,2,3 | 1,2,3")
    known = world.live[1].epoch
    world.live[1] = replace(world.live[1], epoch=known + 1000)
    assert world.again(1).bounced == (1,)
    assert world.show() == ["2@5 1,2,3 | 2,3"]


def test_one_bounces_while_the_other_dies(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    del world.live[1]
    world.up(2)
    assert world.show() == ["2@5 1,2 | 2"]


@pytest.mark.parametrize(
    ("before", "dead", "back", "after"),
    [
        # Others are in sync: it leaves them.
        ("2@4 1,2,3 | 2,3", (), 1, "2@4 1,2,3 | 2,3"),
        ("1@4 1,2,3 | 1,2", (), 1, "2@5 1,2,3 | 2"),
        # All were dead; the one that is back has nothing, and waits for the other.
        ("1@4 1,2,3 | 1,2", (1, 2), 1, "-@5 1,2,3 | 2"),
        # It was alone in sync, and there are other replicas: nobody is in sync any more.
        ("1@4 1,2,3 | 1", (1,), 1, "-@5 1,2,3 |"),
        ("1@4 1,2,3 | 1", (), 1, "-@5 1,2,3 |"),
        # It is the only replica: it leads, empty.
        ("1@4 1 | 1", (1,), 1, "1@6 1 | 1"),
        ("1@4 1 | 1", (), 1, "1@5 1 | 1"),
    ],
)
def test_a_broker_comes_back_without_its_disk(
    world: World, before: str, dead: tuple[int, ...], back: int, after: str
) -> None:
    world.topic("t", before)
    if dead:
        world.down(*dead)
    reply = world.up(back, disk="new")
    assert reply.without_disk == (back,)
    assert world.show() == [after]
    assert [election.unclean for election in reply.elections] == (
        [True] if after.startswith("1@") else [False] * len(reply.elections)
    )
    # The new folder is known from now on: coming back with it is nothing special.
    assert world.up(back, disk="new").without_disk == ()


def test_what_waits_for_a_lost_disk_can_be_led_unclean_by_one_with_a_log(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1", unclean_leader_election_enable="true")
    reply = world.up(1, disk="new")
    assert world.show() == ["2@5 1,2,3 | 2"]
    assert reply.elections == (("t", 0, 1, 2, 5, True),)


def test_unclean_election_of_the_topic_or_of_the_brokers(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1", unclean_leader_election_enable="true")
    world.topic("u", "1@4 1,2,3 | 1")
    world.topic("v", "1@4 1,2,3 | 1,3", unclean_leader_election_enable="true")
    reply = world.down(1)
    assert [world.show(name) for name in "tuv"] == [
        ["2@5 1,2,3 | 2"],
        ["-@5 1,2,3 | 1"],
        ["3@5 1,2,3 | 3"],
    ]
    assert {each.topic: each.unclean for each in reply.elections} == {"t": True, "v": False}
    assert reply.offline == (("u", 0),)
    world.config.reconfigure({"unclean.leader.election.enable": "true"}, {})
    assert world.look().elections == (("u", 0, -1, 2, 6, True),)


def test_the_first_that_is_back_leads_unclean(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1", unclean_leader_election_enable="true")
    world.down(1, 2, 3)
    assert world.show() == ["-@5 1,2,3 | 1"]
    assert world.up(3).elections == (("t", 0, -1, 3, 6, True),)
    assert world.show() == ["3@6 1,2,3 | 3"]


def test_who_is_shutting_down_is_not_chosen_but_goes_on(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2,3", "2@4 2,1,3 | 2,1,3", "1@4 1,2 | 1,2")
    world.shutting_down = {2}
    world.down(1)
    assert world.show() == ["3@5 1,2,3 | 2,3", "2@4 2,1,3 | 2,3", "-@5 1,2 | 2"]
    # It did not stop after all, but began anew.
    world.up(2)
    assert world.show() == ["3@5 1,2,3 | 3", "3@5 2,1,3 | 3", "2@6 1,2 | 2"]


def test_no_unclean_election_while_an_in_sync_replica_lives(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2", unclean_leader_election_enable="true")
    world.shutting_down = {2}
    world.down(1)
    assert world.show() == ["-@5 1,2,3 | 2"]


@pytest.mark.parametrize(
    ("before", "gone", "after"),
    [
        # The last of those that leave dies: all that stays is in sync.
        ("1@4 2,3,1 | 1,2,3 +3 -1", (1,), "2@6 2,3 | 2,3"),
        # An added one is not in sync yet: the reassignment goes on with a leader of the old ones.
        ("1@4 2,3,1 | 1,2 +3 -1", (1,), "2@5 2,3,1 | 2 +3 -1"),
        # The added one dies.
        ("1@4 2,3,1 | 1,2 +3 -1", (3,), "1@4 2,3,1 | 1,2 +3 -1"),
    ],
)
def test_brokers_vanish_during_a_reassignment(
    world: World, before: str, gone: tuple[int, ...], after: str
) -> None:
    world.topic("t", before)
    world.down(*gone)
    assert world.show() == [after]


def test_writes_are_fenced_by_versions_and_deltas_are_one_a_topic(world: World) -> None:
    world.topic("t", *["1@4 1,2 | 1,2"] * 3, "2@4 2,3 | 2,3")
    world.topic("u", "1@0 1,3 | 1,3")
    del world.live[1]
    plan = brokers_changed(world.live, world.image, world.config)
    assert [type(each) for each in plan.writes] == [SetData] * 4
    assert {each.version for each in plan.writes} == {0}
    assert [type(each) for each in plan.deltas] == [BrokerVanished] + [PartitionsChanged] * 2
    assert plan.deltas[1].partitions == (0, 1, 2)
    world.do(plan)
    again = brokers_changed(world.live, world.image, world.config)
    assert (again.writes, again.deltas) == ((), ())


def test_directories_are_noted_once_and_last(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    world.live[1] = replace(world.live[1], epoch=999, directory_id="new")
    plan = brokers_changed(world.live, world.image, world.config)
    assert [type(each) for each in plan.deltas] == [
        BrokerVanished,
        BrokerAppeared,
        PartitionsChanged,
        DirectoryChanged,
    ]
    assert plan.writes[-1].path == "/ottla/directories/1"


def test_whoever_stops_between_two_writes_leaves_what_can_be_finished(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1", "1@4 1,3 | 1,3", "1@4 2,3,1 | 1,2,3 +3 -1")
    del world.live[2]
    world.live[1] = replace(world.live[1], epoch=999, directory_id="new")
    plan = brokers_changed(world.live, world.image, world.config)
    ends = []
    for writes in range(len(plan.writes) + 1):
        other = world.after_crash(plan, writes)
        other.look()
        # Epochs may have grown more often.
        ends.append([re.sub("@.", "", text) for text in other.show()])
    assert set(map(tuple, ends)) == {("- 1,2,3 |", "3 1,3 | 3", "3 2,3 | 3")}


def test_a_broker_that_began_anew_between_two_controllers_is_found_out(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2", "1@4 1 | 1")
    world.live[1] = replace(world.live[1], epoch=999)
    other = world.after_crash(Plan(None), 0)
    other.look()
    # The partition with one replica stays as it is.
    assert other.show() == ["2@5 1,2 | 2", "1@4 1 | 1"]


def test_ten_thousand_partitions_are_thought_about_a_few_times(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignments = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    for number in range(100):
        states = tuple(PartitionState(each[0], 4, each, each, 0) for each in assignments * 33)
        topic = TopicImage(f"t{number}", UUID(int=number + 1), states, {})
        world.image.apply(TopicCreated(topic))
    thought = 0
    settled = broker_changes.settled

    def counted(*given: Any, **more: Any) -> PartitionState:
        nonlocal thought
        thought += 1
        return settled(*given, **more)

    monkeypatch.setattr(broker_changes, "settled", counted)
    del world.live[1]
    plan = brokers_changed(world.live, world.image, world.config)
    assert len(plan.writes) == 9900
    assert len(plan.reply.elections) == 3300
    assert thought == 3
