"""Records of groups of both protocols in one partition: an id is that of one group."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.groups.classic.requests import JoinRequest, JoinResult, LeavingMember
from ottla.groups.consumer.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.consumer.settings import ConsumerGroupSettings
from ottla.groups.consumer.step import SessionExpired
from ottla.groups.consumer.stored import ConsumerRecord
from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.newer_stored import GroupKey, MemberKey
from ottla.groups.offsets.commit import CommitRequest, OffsetToCommit
from ottla.groups.offsets.fetch import NO_MEMBER, FetchingMember
from ottla.groups.offsets.transactional_commit import TransactionalCommitRequest
from ottla.groups.records import decode, encode
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard
from ottla.groups.step import Step
from ottla.groups.stored import CoordinatorRecord, GroupMetadataKey, OffsetCommitKey
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch, SetTimer

TOPIC_ID = UUID(int=7)
DAY_MS = 24 * 60 * 60_000


class World:
    """A shard over topic `t` with four partitions, and its log as bytes."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.settings = GroupSettings(min_session_timeout_ms=1)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.policy = "bidirectional"
        self.shard = self.new_shard()

    def new_shard(self) -> GroupShard:
        return GroupShard(
            lambda: Topics(1, {"t": Topic(TOPIC_ID, 4)}),
            lambda group: ConsumerGroupSettings(migration_policy=self.policy),
        )

    def step(self) -> Step:
        return Step(self.now_ms, self.settings)

    def run(self, step: Step) -> Step:
        for record in step.records:
            self.log.append(encode(record))
            self.shard.apply(record, len(self.log), self.now_ms, None)
        if step.when_appended is not None:
            later = self.step()
            step.when_appended(later)
            self.run(later)
            step.replies += later.replies
        return step

    def restart(self) -> None:
        self.shard = self.new_shard()
        for offset, (key, value) in enumerate(self.log):
            record = decode(key, value)
            assert record is not None
            self.shard.apply(record, offset, self.now_ms, None)
        self.run_loaded()

    def run_loaded(self) -> Step:
        step = self.step()
        self.shard.loaded(step)
        return self.run(step)

    def beat(self, member: str, epoch: int = 0, group: str = "g", **changes: Any) -> int:
        request = HeartbeatRequest(group, member, epoch, "client", "/127.0.0.1")
        if epoch == 0:
            request = request._replace(
                rebalance_timeout_ms=60_000, subscribed_topics=frozenset({"t"}), owned={}
            )
        step = self.step()
        result = self.shard.consumer_heartbeat(request._replace(**changes), 1, step)
        assert isinstance(result, HeartbeatResult)
        self.run(step)
        return result.epoch

    def commit(self, epoch: int, member: str, *, version: int = 9, partition: int = 0) -> None:
        offset = OffsetToCommit("t", TOPIC_ID, partition, 7, -1, None)
        step = self.step()
        self.shard.commit(CommitRequest("g", epoch, member, None, -1, (offset,), version), step)
        self.run(step)

    def join(self, group: str = "g") -> JoinResult | None:
        """A classic member's request; None if it waits."""
        request = JoinRequest(
            "token", group, "", "i", "new", "client", "/127.0.0.1", 10_000, 10_000,
            "consumer", (("range", b"\0\0\0\0\0\1\0\1t"),),
        )  # fmt: skip
        step = self.step()
        self.shard.join(request, step)
        self.run(step)
        return step.replies[0].result if step.replies else None


@pytest.fixture
def world() -> World:
    return World()


def refusal(call: Any, *arguments: Any, **options: Any) -> ApiError:
    with pytest.raises(ApiError) as refused:
        call(*arguments, **options)
    return refused.value


def test_a_group_is_as_before_once_its_records_are_read_again(world: World) -> None:
    assert world.beat("a") == 2
    world.now_ms += 10_000
    assert world.beat("b") == 3
    world.commit(2, "a")
    before = world.shard.consumer.groups["g"]
    world.restart()
    after = world.shard.consumer.groups["g"]
    assert (after.members, after.targets, after.epoch, after.target_epoch) == (
        before.members, before.targets, before.epoch, before.target_epoch,
    )  # fmt: skip
    assert not world.shard.groups, "offsets make no simple group of it"
    timers = world.run_loaded().timers
    assert {timer.key[2] for timer in timers if isinstance(timer, SetTimer)} == {"a", "b"}  # type: ignore[index]


def test_offsets_before_the_group_s_own_records(world: World) -> None:
    """Compaction leaves the newest record of each key, in whatever order they are then."""
    world.commit(-1, "")
    assert list(world.shard.groups) == ["g"]
    world.beat("a")
    tombstones = [key for key, value in world.log if value is None]
    assert [decode(key, None) for key in tombstones] == [
        CoordinatorRecord(GroupMetadataKey("g"), None)
    ]
    world.log = [(key, value) for key, value in world.log if value is not None]
    world.restart()
    assert (list(world.shard.groups), list(world.shard.consumer.groups)) == ([], ["g"])


def test_an_empty_group_becomes_one_of_the_other_type(world: World) -> None:
    world.beat("a")
    world.beat("a", -1)
    assert world.join() is None
    for _ in range(2):
        assert (list(world.shard.groups), list(world.shard.consumer.groups)) == (["g"], [])
        world.restart()
    assert world.beat("b") == 2
    for _ in range(2):
        assert (list(world.shard.groups), list(world.shard.consumer.groups)) == ([], ["g"])
        world.restart()


def test_members_of_the_two_protocols_do_not_mix_if_they_may_not(world: World) -> None:
    world.policy = "disabled"
    world.beat("a")
    joined = world.join()
    assert joined is not None
    assert joined.error is ErrorCode.inconsistent_group_protocol
    assert world.join("h") is None
    refused = refusal(world.beat, "b", group="h")
    assert (refused.code, refused.message) == (
        ErrorCode.group_id_not_found,
        "Cannot upgrade classic group h to consumer group because online upgrade is disabled.",
    )
    refused = refusal(world.beat, "b", 4, group="h")
    assert refused.message == "Group h is not a consumer group."


def test_who_may_commit(world: World) -> None:
    epoch = world.beat("a")
    world.commit(epoch, "a")
    assert refusal(world.commit, epoch, "b").code is ErrorCode.unknown_member_id
    assert refusal(world.commit, epoch + 1, "a").code is ErrorCode.stale_member_epoch
    assert refusal(world.commit, epoch, "a", version=8).code is ErrorCode.unsupported_version
    assert refusal(world.commit, -1, "").code is ErrorCode.unknown_member_id
    world.now_ms += 10_000
    world.beat("b")
    world.beat("a", epoch, owned={TOPIC_ID: frozenset(range(4))})
    world.beat("a", epoch, owned={TOPIC_ID: frozenset(range(2))})
    member = world.shard.consumer.groups["g"].members["a"]
    assert member.epoch == epoch + 1
    kept = min(member.assigned[TOPIC_ID])
    world.commit(epoch, "a", partition=kept)
    lost = min(set(range(4)) - member.assigned[TOPIC_ID].keys())
    assert refusal(world.commit, epoch, "a", partition=lost).code is ErrorCode.stale_member_epoch


def test_who_may_commit_in_a_transaction(world: World) -> None:
    epoch = world.beat("a")

    def commit(member: str, in_epoch: int) -> None:
        offset = OffsetToCommit("t", TOPIC_ID, 0, 7, -1, None)
        request = TransactionalCommitRequest(
            "g", "id", ProducerEpoch(7, 0), in_epoch, member, None, (offset,), 3
        )
        world.shard.commit_in_transaction(request, world.step())

    commit("a", epoch)
    commit("", -1)
    assert refusal(commit, "a", epoch + 1).code is ErrorCode.illegal_generation
    assert refusal(commit, "b", epoch).code is ErrorCode.unknown_member_id


def test_who_may_fetch(world: World) -> None:
    epoch = world.beat("a")
    check = world.shard.check_fetch
    check("g", NO_MEMBER)
    check("g", FetchingMember("a", epoch))
    check("other", FetchingMember("a", epoch))
    late = refusal(check, "g", FetchingMember("a", epoch - 1))
    assert late.code is ErrorCode.stale_member_epoch
    unknown = refusal(check, "g", FetchingMember("b", epoch))
    assert unknown.code is ErrorCode.unknown_member_id


def test_what_administrators_see(world: World) -> None:
    world.beat("a")
    (listed,) = world.shard.list_groups(frozenset(), frozenset())
    assert listed == ("g", "consumer", "Stable", "consumer")
    assert world.shard.list_groups(frozenset(), frozenset({"classic"})) == []
    assert world.shard.list_groups(frozenset({"stable"}), frozenset({"consumer"})) == [listed]
    assert world.shard.list_groups(frozenset({"empty"}), frozenset()) == []
    assert world.shard.describe_group("g").reason == "Group g is not a classic group."
    described = world.shard.describe_consumer_group("g")
    assert described[:5] == ("g", "Stable", 2, 2, "uniform")
    ((member, target),) = described.members
    assert (member.member_id, target) == ("a", {TOPIC_ID: frozenset(range(4))})
    refused = refusal(world.shard.describe_consumer_group, "h")
    assert (refused.code, refused.message) == (ErrorCode.group_id_not_found, "Group h not found.")


def test_offsets_of_subscribed_topics_stay(world: World) -> None:
    epoch = world.beat("a")
    world.commit(epoch, "a")
    step = world.step()
    subscribed = ErrorCode.group_subscribed_to_topic
    assert world.shard.delete_offsets("g", (("t", (0,)),), step) == [[subscribed]]
    assert world.shard.delete_group("g", step) is ErrorCode.non_empty_group
    world.now_ms += 30 * DAY_MS
    assert world.shard.remove_expired(step)
    assert not step.records


def test_an_empty_group_goes_with_its_last_offset(world: World) -> None:
    world.commit(world.beat("a"), "a")
    world.now_ms += 6 * DAY_MS
    world.beat("a", -1)
    step = world.step()
    world.shard.remove_expired(step)
    assert not world.run(step).records
    world.now_ms += 2 * DAY_MS
    step = world.step()
    world.shard.remove_expired(step)
    keys = [record.key for record in world.run(step).records]
    assert OffsetCommitKey("g", "t", 0) in keys
    assert GroupKey("g") in keys
    assert not world.shard.group_ids()
    world.restart()
    assert not world.shard.group_ids()


def test_delete_an_empty_group(world: World) -> None:
    world.commit(world.beat("a"), "a")
    world.beat("a", -1)
    step = world.step()
    assert world.shard.delete_group("g", step) is ErrorCode.none
    world.run(step)
    assert not world.shard.group_ids()
    assert not list(world.shard.offsets.all())


def test_a_member_whose_session_has_expired_goes(world: World) -> None:
    world.beat("a")
    step = world.step()
    world.shard.expired(SessionExpired("g", "a"), step)
    assert step.when_refused is not None
    later = world.step()
    step.when_refused(later, ErrorCode.not_enough_replicas)
    (timer,) = later.timers
    assert isinstance(timer, SetTimer)
    assert (timer.event, timer.delay_ms) == (SessionExpired("g", "a"), 10_000)
    records = world.run(step).records
    assert ConsumerRecord(MemberKey("g", "a"), None) in records
    assert not world.shard.consumer.groups["g"].members


def test_the_partition_is_full(world: World) -> None:
    world.settings = GroupSettings(max_groups=1)
    world.beat("a")
    assert refusal(world.beat, "a", group="h").code is ErrorCode.group_max_size_reached
    assert world.beat("b") == 2


def test_leave_group_removes_members_at_once(world: World) -> None:
    """As an administrator does it (KIP-345); the group begins one new epoch."""
    world.beat("a")
    world.beat("b", instance_id="i")
    world.beat("c")
    epoch = world.shard.consumer.groups["g"].epoch
    leaving = [
        LeavingMember("a", None), LeavingMember("", "i"), LeavingMember("a", None),
        LeavingMember("d", None), LeavingMember("", "j"), LeavingMember("c", "i"),
    ]  # fmt: skip
    step = world.step()
    left = world.shard.leave("g", leaving, step)
    world.run(step)
    assert [each.error for each in left] == [
        ErrorCode.none,
        ErrorCode.none,
        ErrorCode.none,
        ErrorCode.unknown_member_id,
        ErrorCode.unknown_member_id,
        ErrorCode.fenced_instance_id,
    ]
    group = world.shard.consumer.groups["g"]
    assert (list(group.members), group.epoch) == (["c"], epoch + 1)


def test_what_a_member_is_to_give_up_is_still_its_own(world: World) -> None:
    epoch = world.beat("a")
    world.now_ms += 10_000
    world.beat("b")
    world.beat("a", epoch, owned={TOPIC_ID: frozenset(range(4))})
    members = {
        each.member.member_id: each for each in world.shard.describe_consumer_group("g").members
    }
    assert len(members["a"].target[TOPIC_ID]) == 2
    assert members["a"].owned == {TOPIC_ID: frozenset(range(4))}
    assert members["b"].owned == {}
