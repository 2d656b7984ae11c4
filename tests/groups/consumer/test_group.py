"""Whatever members do: no partition has two owners, the log says it all, and the end is stable."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.groups.consumer.world import World, stored

from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.consumer.group import ConsumerGroup, GroupState
from ottla.groups.consumer.record_format import decode
from ottla.groups.consumer.requests import HeartbeatRequest
from ottla.groups.consumer.shard import ConsumerGroupShard
from ottla.groups.consumer.stored import (
    ConsumerRecord,
    MemberValue,
    PartitionMetadataKey,
    PartitionMetadataValue,
    RegexKey,
    RegexValue,
)
from ottla.groups.newer_stored import GroupKey, MemberKey
from ottla.protocol.errors import ApiError, ErrorCode

NAMES = "abcd"
TOPICS = "tuv"
EXPECTED = {
    ErrorCode.fenced_member_epoch,
    ErrorCode.unknown_member_id,
    ErrorCode.group_id_not_found,
    ErrorCode.unreleased_instance_id,
    ErrorCode.fenced_instance_id,
}


class Action(NamedTuple):
    kind: str
    client: str
    topics: frozenset[str]
    number: int


actions = st.builds(
    Action,
    st.sampled_from(
        [
            "join",
            "beat",
            "beat",
            "beat",
            "lost",
            "slow",
            "leave",
            "pause",
            "wait",
            "topic",
            "restart",
        ]
    ),
    st.sampled_from(NAMES),
    st.frozensets(st.sampled_from(TOPICS), min_size=1),
    st.integers(0, 60),
)


class Client:
    """A consumer that does as it is told, and joins again when it is fenced."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lives = 0
        self.epoch = 0
        self.owned: Partitions = {}
        self.told: Partitions = {}
        """What it is to have; a slow client gets there with a later heartbeat."""
        self.is_unsure = False
        """An answer was lost: the next heartbeat says everything."""
        self.instance = f"i-{name}" if name in "ab" else None
        self.topics: frozenset[str] = frozenset("t")

    def begin_again(self) -> None:
        self.epoch, self.owned, self.told = 0, {}, {}

    @property
    def member_id(self) -> str:
        return f"{self.name}{self.lives}"

    def request(self, **changes: Any) -> HeartbeatRequest:
        is_full = changes.get("epoch", self.epoch) == 0
        return HeartbeatRequest(
            "g",
            self.member_id,
            self.epoch,
            "c",
            "/h",
            instance_id=self.instance,
            rebalance_timeout_ms=20_000 if is_full or self.is_unsure else -1,
            subscribed_topics=self.topics,
            owned={} if is_full else self.owned,
        )._replace(**changes)


class Actors(World):
    def __init__(self) -> None:
        super().__init__()
        self.clients = {name: Client(name) for name in NAMES}
        self.set_topic("t", 3)
        self.set_topic("u", 2)

    def beat(self, client: Client, *, is_lost: bool = False, is_slow: bool = False) -> None:
        if not is_slow:
            client.owned = client.told
        try:
            result, _ = self.heartbeat(client.request())
        except ApiError as error:
            if error.code not in EXPECTED:
                raise
            client.begin_again()
            if error.code is ErrorCode.unreleased_instance_id:
                # The one before has to end first.
                self.pass_time(46_000)
            return
        client.is_unsure = is_lost
        if is_lost:
            return
        client.epoch = result.epoch
        if result.assignment is not None:
            client.told = result.assignment

    def pass_time(self, delay_ms: int) -> None:
        until_ms = self.now_ms + delay_ms
        while (event := self.next_timer(until_ms)) is not None:
            self.expire(event)

    def end(self, client: Client, epoch: int) -> None:
        with suppress(ApiError):
            self.heartbeat(client.request(epoch=epoch, owned=None, subscribed_topics=None))
        client.begin_again()
        client.lives += 1

    def do(self, action: Action) -> None:
        client = self.clients[action.client]
        match action.kind:
            case "join":
                client.begin_again()
                client.topics = action.topics
                client.lives += 1
                self.beat(client)
            case "beat" | "lost" | "slow":
                if action.number < 10:
                    client.topics = action.topics
                self.beat(client, is_lost=action.kind == "lost", is_slow=action.kind == "slow")
            case "leave":
                self.end(client, -1)
            case "pause":
                if client.instance is not None:
                    self.end(client, -2)
            case "wait":
                self.pass_time(action.number * 1_000)
            case "topic":
                name = min(action.topics)
                if action.number > 3:
                    known = self.topics.by_name.get(name)
                    more = 0 if known is None else known.partition_count
                    self.set_topic(name, min(6, more + 1))
                elif name in self.topics.by_name:
                    self.set_topic(name, 0)
            case "restart":
                self.restart()


def check(world: World) -> None:
    assert stored(world.replayed()) == stored(world.shard)
    assert stored(compacted(world)) == stored(world.shard)
    for group in world.shard.groups.values():
        owned = Counter(
            (topic, partition)
            for member in group.members.values()
            for part in (member.assigned, member.pending_revocation)
            for topic, epochs in part.items()
            for partition in epochs
        )
        assert not [one for one, count in owned.items() if count > 1]
        assert set(owned) == set(group.owner_epochs)


def compacted(world: World) -> ConsumerGroupShard:
    """A shard that has read only the newest record of each key."""
    newest = {key: number for number, (key, _) in enumerate(world.log)}
    shard = ConsumerGroupShard()
    for number in sorted(newest.values()):
        record = decode(*world.log[number])
        assert record is not None
        shard.apply(record)
    return shard


@settings(max_examples=60, deadline=None)
@given(st.lists(actions, max_size=40))
def test_any_sequence_of_events(sequence: list[Action]) -> None:
    world = Actors()
    for action in sequence:
        world.do(action)
        check(world)
    # Faults end: everybody alive sends heartbeats, the others expire.
    for _ in range(40):
        world.pass_time(3_000)
        for client in world.clients.values():
            world.beat(client)
    check(world)
    group = world.shard.groups["g"]
    assert group.state is GroupState.STABLE
    assert {member.member_id for member in group.members.values()} == {
        client.member_id for client in world.clients.values()
    }
    wanted = {
        (topic.id, partition)
        for name, topic in world.topics.by_name.items()
        for partition in range(topic.partition_count)
        if any(name in client.topics for client in world.clients.values())
    }
    assert set(group.owner_epochs) == wanted
    for client in world.clients.values():
        known = group.members[client.member_id]
        assert {topic: set(each) for topic, each in client.owned.items()} == {
            topic: set(epochs) for topic, epochs in known.assigned.items()
        }


def test_states_of_a_group() -> None:
    group = ConsumerGroup("g")
    assert (group.state, group.epoch, group.target_epoch) == (GroupState.EMPTY, 1, 1)
    value = MemberValue(None, None, "c", "/h", ("t",), "", 1, None)
    group.apply(ConsumerRecord(MemberKey("g", "m"), value))
    assert group.state is GroupState.RECONCILING
    assert group.subscribers == {"t": 1}


def test_a_regular_expression_counts_once_it_is_resolved() -> None:
    shard = ConsumerGroupShard()
    value = MemberValue(None, None, "c", "/h", ("t",), "u.*", 1, None)
    shard.apply(ConsumerRecord(MemberKey("g", "m"), value))
    group = shard.groups["g"]
    assert group.topics_of(group.members["m"]) == {"t"}
    shard.apply(ConsumerRecord(RegexKey("g", "u.*"), RegexValue(("u1", "u2"), 1, 1)))
    assert group.topics_of(group.members["m"]) == {"t", "u1", "u2"}
    shard.apply(ConsumerRecord(RegexKey("g", "u.*"), None))
    assert group.topics_of(group.members["m"]) == {"t"}


def test_tombstones_of_what_is_not_there_are_ignored() -> None:
    shard = ConsumerGroupShard()
    shard.apply(ConsumerRecord(MemberKey("g", "m"), None))
    assert shard.groups == {}


def test_the_record_of_kafka_4_0_is_removed_when_topics_are_looked_at() -> None:
    world = Actors()
    world.shard.apply(ConsumerRecord(PartitionMetadataKey("g"), PartitionMetadataValue()))
    _, records = world.heartbeat(world.clients["c"].request())
    assert ConsumerRecord(PartitionMetadataKey("g"), None) in records
    assert not world.shard.groups["g"].has_partition_metadata


def test_a_group_with_members_is_not_removed() -> None:
    world = Actors()
    with pytest.raises(ApiError, match="not found"):
        world.shard.remove("g", world.step())
    world.beat(world.clients["c"])
    with pytest.raises(ApiError, match="not empty"):
        world.shard.remove("g", world.step())
    world.end(world.clients["c"], -1)
    step = world.step()
    world.shard.remove("g", step)
    assert ConsumerRecord(GroupKey("g"), None) in world.run(step)
    assert world.shard.groups == {}


def test_version_0_gets_its_id_from_the_coordinator() -> None:
    world = Actors()
    request = world.clients["c"].request(member_id="", new_member_id="made")
    result = world.shard.heartbeat(request, world.topics, world.step(), version=0)
    assert result.member_id == "made"
    with pytest.raises(ApiError, match="MemberId can't be empty"):
        world.shard.heartbeat(request, world.topics, world.step())


def test_a_clock_that_was_set_back_does_not_hold_up_assignments() -> None:
    world = Actors()
    world.beat(world.clients["c"])
    world.now_ms -= 3_600_000
    world.beat(world.clients["d"])
    assert world.shard.groups["g"].target_epoch == 3
