from __future__ import annotations

from typing import Any

from tests.groups.consumer.world import World, stored

from ottla.groups.aside import Aside, is_unchanged
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import heartbeat
from ottla.groups.consumer.large import MAX_AT_ONCE, is_large
from ottla.groups.consumer.record_format import encode
from ottla.groups.consumer.requests import HeartbeatRequest
from ottla.groups.consumer.stored import ConsumerRecord, RegexKey, RegexValue
from ottla.groups.newer_stored import GroupKey


def request(member: str, epoch: int, **changes: Any) -> HeartbeatRequest:
    made = HeartbeatRequest("g", member, epoch, "client", "/127.0.0.1")
    if epoch == 0:
        made = made._replace(
            rebalance_timeout_ms=60_000, subscribed_topics=frozenset({"t"}), owned={}
        )
    return made._replace(**changes)


def test_a_group_is_large_by_its_members_topics_and_partitions() -> None:
    world = World()
    world.set_topic("t", 10)
    group = ConsumerGroup("g")
    assert not is_large(group, request("a", 0), world.topics)
    many = frozenset(map(str, range(MAX_AT_ONCE // 4 + 1)))
    assert is_large(group, request("a", 0, subscribed_topics=many), world.topics)
    world.set_topic("t", MAX_AT_ONCE)
    assert is_large(group, request("a", 0), world.topics)


def test_partitions_are_counted_again_when_topics_change() -> None:
    """Those of the cluster, what members subscribe to, or what an expression matches."""
    world = World()
    world.set_topic("t", 10)
    world.set_topic("u", MAX_AT_ONCE)
    world.heartbeat(request("a", 0))
    group = world.shard.groups["g"]
    asked = request("b", 0)
    assert not is_large(group, asked, world.topics)
    world.heartbeat(request("b", 0, subscribed_topics=frozenset({"t", "u"})))
    assert is_large(group, asked, world.topics)
    world.heartbeat(request("b", -1))
    assert not is_large(group, asked, world.topics)
    world.set_topic("t", MAX_AT_ONCE)
    assert is_large(group, asked, world.topics)
    world.set_topic("t", 0)
    assert not is_large(group, asked, world.topics)
    group.apply(ConsumerRecord(RegexKey("g", "u.*"), RegexValue(("u",), 1, 0)))
    assert is_large(group, asked, world.topics)
    group.apply(ConsumerRecord(RegexKey("g", "u.*"), None))
    assert not is_large(group, asked, world.topics)


def test_a_member_that_says_nothing_new_is_answered_at_once() -> None:
    world = World()
    world.set_topic("t", MAX_AT_ONCE)
    epoch = world.heartbeat(request("a", 0))[0].epoch
    group = world.shard.groups["g"]
    assert is_large(group, request("a", epoch), world.topics), "its topics were not looked at yet"
    world.heartbeat(request("a", epoch))
    assert not is_large(group, request("a", epoch), world.topics)
    world.set_topic("u", 1)
    assert is_large(group, request("a", epoch), world.topics)


def test_a_copy_decides_as_the_group_would() -> None:
    world = World()
    world.set_topic("t", 4)
    world.heartbeat(request("a", 0))
    before = stored(world.shard)
    group = world.shard.groups["g"]
    step, alone = world.step(), world.step()
    copied = Aside(group, world.topics, step).copied()
    asked = request("b", 0)
    result, encoded = copied.decide(lambda copy, topics, step: heartbeat(copy, asked, topics, step))
    assert world.shard.heartbeat(asked, world.topics, alone) == result
    assert (step.records, step.timers) == (alone.records, alone.timers)
    assert encoded == [encode(record) for record in step.records]
    assert stored(world.shard) == before
    assert is_unchanged(copied, world.shard.groups)
    world.run(step)
    assert not is_unchanged(copied, world.shard.groups)
    assert list(copied.group.members) == ["a"]


def test_a_group_made_again_is_another_although_it_had_as_many_records() -> None:
    world = World()
    world.set_topic("t", 4)
    world.heartbeat(request("a", 0))
    group = world.shard.groups["g"]
    copied = Aside(group, world.topics, world.step()).copied()
    assert is_unchanged(copied, world.shard.groups)
    world.heartbeat(request("a", -1))
    world.shard.apply(ConsumerRecord(GroupKey("g"), None))
    assert not is_unchanged(copied, world.shard.groups)
    world.heartbeat(request("b", 0))
    assert world.shard.groups["g"].revision == copied.group.revision
    assert not is_unchanged(copied, world.shard.groups)


def test_a_new_group_is_unchanged_until_another_heartbeat_makes_it() -> None:
    world = World()
    world.set_topic("t", MAX_AT_ONCE)
    group = world.shard.large_group(request("a", 0), world.topics)
    assert group is not None
    copied = Aside(group, world.topics, world.step()).copied()
    assert is_unchanged(copied, world.shard.groups)
    world.heartbeat(request("b", 0))
    assert not is_unchanged(copied, world.shard.groups)
