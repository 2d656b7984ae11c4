"""Subscriptions by regular expression; cases follow Apache Kafka's GroupMetadataManagerTest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.groups.consumer.world import World, named
from tests.turns import calls_of

from ottla.groups.consumer.member import Member
from ottla.groups.consumer.regexes import MAX_GROUP_REGEXES, resolved
from ottla.groups.consumer.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.consumer.stored import ConsumerRecord, RegexKey, RegexValue
from ottla.groups.consumer.subscription import Change, subscribed_names
from ottla.groups.newer_stored import GroupKey
from ottla.protocol.errors import ApiError, ErrorCode


class RegexWorld(World):
    """Members that subscribe by regular expression, which `match` resolves."""

    def beat(self, member: str, epoch: int = 0, **changes: Any) -> HeartbeatResult:
        request = HeartbeatRequest("g", member, epoch, "client", "/127.0.0.1")
        if epoch == 0:
            request = request._replace(
                rebalance_timeout_ms=60_000, subscribed_regex="t.*", owned={}
            )
        return self.heartbeat(request._replace(**changes))[0]

    def match(self, **topics: tuple[str, ...]) -> list[ConsumerRecord]:
        """Each expression without its dots and stars is the name of what it matches."""
        step = self.step()
        matched = {f"{name}.*": found for name, found in topics.items()}
        resolved(matched, self.topics.version, self.shard.groups["g"], self.topics, step)
        return self.run(step)


@pytest.fixture
def world() -> RegexWorld:
    made = RegexWorld()
    for name in ("t1", "t2", "u1"):
        made.set_topic(name, 2)
    return made


def test_a_member_gets_topics_once_its_expression_is_matched(world: RegexWorld) -> None:
    joined = world.beat("a")
    assert joined.due_regexes == ("t.*",)
    assert named(joined.assignment or {}) == "nothing"
    records = world.match(t=("t1", "t2"))
    version = world.topics.version
    assert records[0] == ConsumerRecord(
        RegexKey("g", "t.*"), RegexValue(("t1", "t2"), version, world.now_ms)
    )
    assert isinstance(records[1].key, GroupKey)
    world.now_ms += 10_000
    told = world.beat("a", joined.epoch)
    assert named(told.assignment or {}) == "t1-0,1 t2-0,1"
    assert told.due_regexes == ()
    assert world.shard.groups["g"].is_subscribed("t2")
    assert not world.shard.groups["g"].is_subscribed("u1")


def test_the_second_member_finds_the_expression_matched(world: RegexWorld) -> None:
    world.beat("a")
    world.match(t=("t1", "t2"))
    world.now_ms += 10_000
    epoch = world.shard.groups["g"].epoch
    told = world.beat("b")
    assert told.due_regexes == ()
    assert world.shard.groups["g"].epoch == epoch + 1


def test_when_expressions_are_matched_again(world: RegexWorld) -> None:
    epoch = world.beat("a").epoch
    assert world.beat("a", epoch).due_regexes == ("t.*",), "not yet matched"
    world.match(t=("t1", "t2"))
    epoch = world.beat("a", epoch).epoch
    world.set_topic("t3", 1)
    world.now_ms += 10_000
    assert world.beat("a", epoch).due_regexes == (), "too early"
    world.now_ms += 1
    assert world.beat("a", epoch).due_regexes == ("t.*",), "there are new topics"
    epoch_before = world.shard.groups["g"].epoch
    world.match(t=("t1", "t2", "t3"))
    assert world.shard.groups["g"].epoch == epoch_before + 1
    world.match(t=("t1", "t2", "t3"))
    assert world.shard.groups["g"].epoch == epoch_before + 1, "the same topics"
    epoch = world.beat("a", epoch).epoch
    world.now_ms += 600_000
    assert world.beat("a", epoch).due_regexes == ()
    world.now_ms += 1
    assert world.beat("a", epoch).due_regexes == ("t.*",), "it is long ago"


def test_a_coordinator_that_takes_over_matches_again(world: RegexWorld) -> None:
    epoch = world.beat("a").epoch
    world.match(t=("t1", "t2"))
    epoch = world.beat("a", epoch).epoch
    world.restart()
    assert world.shard.groups["g"].regexes["t.*"].topics == ("t1", "t2")
    world.now_ms += 10_001
    assert world.beat("a", epoch).due_regexes == ("t.*",)


def test_an_expression_goes_with_its_last_member(world: RegexWorld) -> None:
    epoch = world.beat("a").epoch
    world.match(t=("t1", "t2"))
    epoch = world.beat("a", epoch).epoch
    _, records = world.heartbeat(
        HeartbeatRequest("g", "a", epoch, "client", "/127.0.0.1", subscribed_regex="u.*")
    )
    assert ConsumerRecord(RegexKey("g", "t.*"), None) in records
    world.match(t=("t1",), u=("u1",))
    assert list(world.shard.groups["g"].regexes) == ["u.*"], "the old one came too late"
    world.beat("a", -1)
    assert not world.shard.groups["g"].regexes


@pytest.mark.parametrize("regex", ["", "none.*"])
def test_what_a_member_gives_up_with_its_expression_goes_to_others(
    world: RegexWorld, regex: str
) -> None:
    """Also where it then has none, or one that matches nothing."""
    world.settings = replace(world.settings, assignment_interval_ms=0)
    a, b = world.beat("a").epoch, world.beat("b").epoch
    world.match(t=("t1", "t2"))
    a = world.beat("a", a).epoch
    told = world.beat("b", b)
    assert sum(map(len, (told.assignment or {}).values())) == 2
    world.beat("a", a, subscribed_regex=regex, owned={})
    told = world.beat("b", told.epoch)
    assert named(told.assignment or {}) == "t1-0,1 t2-0,1"


def test_partitions_come_back_to_who_gave_them_up_for_a_while(world: RegexWorld) -> None:
    """Kafka gives them to nobody until the new expression is matched, so that none moves twice."""
    world.settings = replace(world.settings, assignment_interval_ms=0)
    a, b = world.beat("a").epoch, world.beat("b").epoch
    world.match(t=("t1", "t2"))
    a, b = world.beat("a", a).epoch, world.beat("b", b).epoch
    a = world.beat("a", a, subscribed_regex="t1.*|t2.*", owned={}).epoch
    b = world.beat("b", b).epoch
    world.match(**{"t": ("t1", "t2"), "t1.*|t2": ("t1", "t2")})
    told = world.beat("b", b)
    world.beat("b", told.epoch, owned=told.assignment)
    world.beat("a", a)
    owners = world.shard.groups["g"].members
    owned = {name: sum(map(len, owners[name].assigned.values())) for name in ("a", "b")}
    assert owned == {"a": 2, "b": 2}


def test_names_and_an_expression_together(world: RegexWorld) -> None:
    epoch = world.beat("a", subscribed_topics=frozenset({"u1"})).epoch
    world.match(t=("t1",))
    world.now_ms += 10_000
    told = world.beat("a", epoch)
    assert named(told.assignment or {}) == "t1-0,1 u1-0,1"


def test_a_group_has_a_limited_number_of_expressions(world: RegexWorld) -> None:
    for number in range(MAX_GROUP_REGEXES):
        world.beat(f"m{number}", subscribed_regex=f"{number}.*")
    with pytest.raises(ApiError) as refused:
        world.beat("late", subscribed_regex="late.*")
    assert refused.value.code is ErrorCode.invalid_request
    world.beat("another", subscribed_regex="7.*")


def test_what_a_group_subscribes_to_after_a_change_of_one_member(world: RegexWorld) -> None:
    for member, regex in (("a", "t.*"), ("b", "t.*"), ("c", "u.*")):
        world.beat(member, subscribed_regex=regex)
    world.match(t=("t1", "t2"), u=("u1",))
    group = world.shard.groups["g"]
    a, c = group.members["a"], group.members["c"]
    everything = {"t1", "t2", "u1"}

    def names(before: Member | None, after: Member | None) -> set[str]:
        return subscribed_names(group, Change(before, after))

    assert names(a, a) == names(a, None) == everything
    assert names(c, c._replace(subscribed_regex="t.*")) == names(c, None) == {"t1", "t2"}
    assert names(c, c._replace(subscribed_regex="", subscribed_topics=frozenset({"n"}))) == {
        "t1", "t2", "n",
    }  # fmt: skip
    assert names(None, Member("d", subscribed_regex="unresolved.*")) == everything


def test_what_an_expression_matches_is_added_once_for_all_members(world: RegexWorld) -> None:
    for number in range(100):
        world.beat(f"member-{number}")
    world.match(t=("t1", "t2"))
    group = world.shard.groups["g"]
    member = group.members["member-1"]
    names, calls = calls_of(lambda: subscribed_names(group, Change(member, member)))
    assert names == {"t1", "t2"}
    assert calls < 20
