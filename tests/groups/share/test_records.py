"""A group id is that of one group, of one type: how the others answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from tests.groups.test_records import World as OtherWorld
from tests.groups.test_records import refusal

from ottla.groups.consumer.step import SessionExpired
from ottla.groups.newer_stored import MemberKey
from ottla.groups.offsets.fetch import FetchingMember
from ottla.groups.offsets.transactional_commit import TransactionalCommitRequest
from ottla.groups.settings import GroupSettings
from ottla.groups.share import shard
from ottla.groups.share.administration import begin_removal, states_answered
from ottla.groups.share.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.share.stored import ShareRecord
from ottla.groups.step import Step
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch, SetTimer

TOPIC_ID = UUID(int=7)


class World(OtherWorld):
    """The shard of all groups, over topic `t` with four partitions."""

    def share(self, member: str, epoch: int = 0, group: str = "s") -> int:
        topics = frozenset({"t"}) if epoch == 0 else None
        request = HeartbeatRequest(group, member, epoch, "client", "/127.0.0.1", None, topics)
        step = self.step()
        result = self.shard.share_heartbeat(request, step)
        assert isinstance(result, HeartbeatResult)
        self.run(step)
        return result.epoch

    def decide(self, work: Callable[[Step], Any]) -> Any:
        step = self.step()
        result = work(step)
        self.run(step)
        return result


@pytest.fixture
def world() -> World:
    world = World()
    assert world.share("a") == 2
    return world


def test_a_share_group_is_as_before_once_its_records_are_read_again(world: World) -> None:
    world.decide(
        lambda step: world.shard.share_decision(
            "s",
            step,
            lambda share, topics, inner: states_answered(
                share.known("s"), {TOPIC_ID: (0,)}, {}, topics, inner
            ),
        )
    )
    before = world.shard.share.groups["s"]
    world.restart()
    after = world.shard.share.groups["s"]
    assert (after.members, after.targets, after.epoch, after.states) == (
        before.members, before.targets, before.epoch, before.states,
    )  # fmt: skip
    (timer,) = world.run_loaded().timers
    assert isinstance(timer, SetTimer)
    assert timer.event == SessionExpired("s", "a")


def test_members_of_other_types_do_not_join_it(world: World) -> None:
    joined = world.join("s")
    assert joined is not None
    assert joined.error is ErrorCode.inconsistent_group_protocol
    refused = refusal(world.beat, "b", group="s")
    assert (refused.code, refused.message) == (
        ErrorCode.group_id_not_found,
        "Group s is not a consumer group.",
    )


@pytest.mark.parametrize("is_empty", [False, True])
def test_its_members_do_not_join_groups_of_other_types(world: World, is_empty: bool) -> None:
    """Kafka converts none, not even empty ones."""
    world.beat("a", group="c")
    if is_empty:
        world.beat("a", -1, group="c")
    world.commit(-1, "")
    for group in ("c", "g"):
        refused = refusal(world.share, "b", group=group)
        assert (refused.code, refused.message) == (
            ErrorCode.group_id_not_found,
            f"Group {group} is not a share group.",
        )
        assert refusal(world.shard.describe_share_group, group).message == refused.message


def test_it_has_no_offsets_of_that_kind(world: World) -> None:
    world.share("a", group="g")
    for epoch, member in ((2, "a"), (-1, "")):
        refused = refusal(world.commit, epoch, member)
        assert (refused.code, refused.message) == (
            ErrorCode.group_id_not_found,
            "Group g is not a consumer group.",
        )
    request = TransactionalCommitRequest("g", "id", ProducerEpoch(7, 0), -1, "", None, (), 3)
    refused = refusal(world.shard.commit_in_transaction, request, world.step())
    assert refused.code is ErrorCode.group_id_not_found
    refused = refusal(world.shard.delete_offsets, "g", (("t", (0,)),), world.step())
    assert refused.code is ErrorCode.group_id_not_found
    world.shard.check_fetch("g", FetchingMember("a", 2))
    assert world.shard.fetch_all("g") == {}


def test_what_administrators_see(world: World) -> None:
    (listed,) = world.shard.list_groups(frozenset(), frozenset())
    assert listed == ("s", "share", "Stable", "share")
    assert world.shard.list_groups(frozenset({"stable"}), frozenset({"share"})) == [listed]
    assert world.shard.list_groups(frozenset({"empty"}), frozenset()) == []
    assert world.shard.list_groups(frozenset(), frozenset({"consumer"})) == []
    assert world.shard.describe_group("s").reason == "Group s is not a classic group."
    refused = refusal(world.shard.describe_consumer_group, "s")
    assert refused.message == "Group s is not a consumer group."
    described = world.shard.describe_share_group("s")
    assert described[:5] == ("s", "Stable", 2, 2, "simple")
    assert [member.member_id for member in described.members] == ["a"]
    assert refusal(world.shard.describe_share_group, "x").message == "Group x not found."


def test_delete_a_share_group(world: World) -> None:
    begin = lambda step: world.shard.share_change("s", begin_removal, step)  # noqa: E731
    with pytest.raises(ApiError):
        world.decide(begin)
    delete = lambda step: world.shard.delete_group("s", step)  # noqa: E731
    assert world.decide(delete) is ErrorCode.non_empty_group
    world.share("a", -1)
    forgotten = world.decide(begin)
    assert forgotten == {TOPIC_ID: frozenset(range(4))}
    assert world.decide(delete) is ErrorCode.none
    assert world.decide(delete) is ErrorCode.group_id_not_found
    world.restart()
    assert not world.shard.share.groups
    world.beat("a", group="s")
    assert refusal(world.decide, begin).message == "Group s is not a share group."


def test_it_does_not_expire(world: World) -> None:
    world.share("a", -1)
    world.now_ms += 30 * 24 * 60 * 60_000
    step = world.step()
    assert world.shard.remove_expired(step)
    assert not step.records


def test_a_member_whose_session_has_expired_goes(world: World) -> None:
    step = world.step()
    world.shard.expired(SessionExpired("s", "a"), step)
    assert step.when_refused is not None
    later = world.step()
    step.when_refused(later, ErrorCode.not_enough_replicas)
    (timer,) = later.timers
    assert isinstance(timer, SetTimer)
    assert (timer.event, timer.delay_ms) == (SessionExpired("s", "a"), 10_000)
    assert ShareRecord(MemberKey("s", "a"), None) in world.run(step).records
    assert not world.shard.share.groups["s"].members


def test_a_deleted_topic_has_no_state(world: World) -> None:
    assert world.shard.share.groups["s"].states
    step = world.step()
    assert world.shard.topic_deleted("t", TOPIC_ID, step)
    world.run(step)
    assert not world.shard.share.groups["s"].states


def test_many_groups_lose_a_topic_in_several_steps(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "MAX_DELETED_WEIGHT", 2 * (shard.GROUP_WEIGHT + 3) - 1)
    for number in range(4):
        world.share("a", group=f"s{number}")
    found = []
    is_done = False
    while not is_done:
        step = world.step()
        is_done = world.shard.topic_deleted("t", TOPIC_ID, step)
        found.append(len(step.records))
        world.run(step)
    assert found == [3, 2]
    assert not any(each.states.initializing for each in world.shard.share.groups.values())


def test_the_partition_is_full(world: World) -> None:
    world.settings = GroupSettings(max_groups=1)
    assert refusal(world.share, "b", group="x").code is ErrorCode.group_max_size_reached
    assert refusal(world.beat, "b").code is ErrorCode.group_max_size_reached
    world.now_ms += 1_000
    assert world.share("b") == 3
