"""What the histories of groups of each kind say of what happens to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.groups.consumer.world import topic_id
from tests.groups.history.world import REBALANCE_MS, SESSION_MS, World
from tests.groups.streams.world import STATEFUL

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.requests import LeavingMember
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.regexes import resolved
from ottla.groups.history.events import CONSUMER, Cause, Happened, Loaded, Who, Why
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard
from ottla.groups.share import administration
from ottla.groups.share.group import ShareGroup
from ottla.groups.step import Step
from ottla.groups.streams.group import StreamsGroup
from ottla.journey.words.group_history import causes_texts, moved_text, moves_texts
from ottla.protocol.errors import ApiError


def states_answered(shares: Any, begun: Any, topics: Any, step: Any) -> None:
    administration.states_answered(shares.groups["g"], begun, {}, topics, step)


T = frozenset({"t"})
OTHER = b"\0\0\0\0\0\1\0\1u\xff\xff\xff\xff"


def two_classic(world: World) -> None:
    """`a` leads with two partitions, `b` has two."""
    world.join("a")
    world.sync(a=4)
    world.join("b")
    world.join("a")
    world.sync(a=2, b=2)


def test_a_classic_group_from_its_first_member_to_its_last() -> None:
    world = World()
    world.join("a")
    world.advance(30)
    world.sync(a=4)
    (first,) = world.entries
    assert (first["type"], first["epoch"], first["end"], first["lasted_ms"]) == (
        "classic", 1, "stable", 30,
    )  # fmt: skip
    (cause,) = first["causes"]
    assert cause["why"] == "joined"
    assert cause["member"] == {
        "id": "a", "instance_id": None, "client_id": "client-a", "host": "/10.0.0.7",
    }  # fmt: skip
    a, b = ({"id": each, "client_id": f"client-{each}"} for each in ("a", "b"))
    assert first["moves"] == [{"topic": "t", "partitions": "0-3", "from": None, "to": a}]
    world.entries.clear()
    world.join("b")
    assert world.histories.under_way("g")["end"] is None  # type: ignore[index]
    world.advance(1_200)
    world.join("a")
    world.sync(a=2, b=2)
    (second,) = world.entries
    assert (second["epoch"], second["lasted_ms"], second["members"]) == (2, 1_200, 2)
    assert second["moves"] == [{"topic": "t", "partitions": "2-3", "from": a, "to": b}]
    assert (second["moved"], second["is_complete"]) == (2, True)
    world.entries.clear()
    world.leave(LeavingMember("a", None, "closed"), LeavingMember("b", None))
    (last,) = world.entries
    assert (last["end"], [each["why"] for each in last["causes"]]) == ("empty", ["left", "left"])
    assert last["causes"][0]["reason"] == "closed"


def test_a_member_that_missed_its_heartbeat_and_came_back() -> None:
    world = World()
    two_classic(world)
    world.entries.clear()
    world.advance(SESSION_MS - 1)
    world.join("a")  # the leader asks for a rebalance, and is heard of by that
    world.advance(1)
    assert world.whys() == []
    group = world.histories.under_way("g")
    assert group is not None
    causes = group["causes"]
    assert [each["why"] for each in causes] == ["joined_again", "session_expired"]
    assert causes[1]["member"]["id"] == "b"
    assert causes[1]["waited_ms"] == SESSION_MS
    world.advance(0)
    world.sync(a=4)
    world.entries.clear()
    late = Happened("g", "classic", -1, world.now_ms + 700, Cause(Why.CAME_LATE, Who("b")))
    (came,) = world.histories.fold(late)
    assert (came["end"], came["causes"][0]["waited_ms"]) == ("none", 700)
    assert world.histories.fold(late) == []


def test_members_that_do_not_take_part_are_named() -> None:
    world = World()
    for member_id in ("a", "b", "a"):
        world.join(member_id, session_timeout_ms=2 * REBALANCE_MS)
    world.sync(a=2, b=2)
    world.entries.clear()
    world.join("a", session_timeout_ms=2 * REBALANCE_MS)
    world.advance(REBALANCE_MS)
    world.sync(a=4)
    (entry,) = world.entries
    assert [each["why"] for each in entry["causes"]] == ["joined_again", "rebalance_timeout"]
    assert entry["causes"][1]["member"]["id"] == "b"
    assert entry["causes"][1]["waited_ms"] == REBALANCE_MS
    assert entry["lasted_ms"] == REBALANCE_MS


def test_a_changed_subscription_and_a_removed_static_member() -> None:
    world = World()
    world.join("a", group_instance_id="i-1")
    world.sync(a=4)
    world.join("a", group_instance_id="i-1", is_known=True, protocols=(("range", OTHER),))
    world.sync(a=4)
    assert world.whys() == [["joined"], ["subscription_changed"]]
    world.leave(LeavingMember("", "i-1"))
    assert world.whys() == [["removed"]]


def test_a_static_member_that_returns_fences_the_one_before() -> None:
    world = World()
    world.join("a", group_instance_id="i-1")
    world.sync(a=4)
    world.entries.clear()
    world.join("a2", group_instance_id="i-1")
    (entry,) = world.entries
    assert (entry["end"], entry["causes"][0]["why"]) == ("none", "replaced")
    assert entry["causes"][0]["member"]["id"] == "a2"
    assert entry["causes"][0]["other_id"] == "a"
    assert entry["causes"][0]["member"]["instance_id"] == "i-1"


def two_consumers(world: World) -> None:
    world.set_topic("t", 4)
    world.beat("a", subscribed_topics=T, rebalance_timeout_ms=5_000, owned={})
    world.beat("b", subscribed_topics=T, rebalance_timeout_ms=5_000, owned={})
    world.beat("a")
    world.beat("a", owned={topic_id("t"): frozenset({0, 1})})
    world.beat("b")


def test_a_consumer_group_is_stable_once_every_member_has_what_it_should() -> None:
    world = World()
    world.set_topic("t", 4)
    world.beat("a", subscribed_topics=T, rebalance_timeout_ms=5_000, owned={})
    assert world.whys() == [["joined"]]
    world.beat("b", subscribed_topics=T, rebalance_timeout_ms=5_000, owned={})
    world.advance(200)
    world.beat("a")
    assert world.entries == []
    world.beat("a", owned={topic_id("t"): frozenset({0, 1})})
    world.advance(50)
    world.beat("b")
    (entry,) = world.entries
    assert (entry["type"], entry["end"], entry["lasted_ms"]) == ("consumer", "stable", 250)
    assert (entry["moved"], entry["members"]) == (2, 2)
    (move,) = entry["moves"]
    assert (move["topic"], move["from"]["id"], move["to"]["id"]) == ("t", "a", "b")


def test_why_consumers_rebalance() -> None:
    world = World()
    two_consumers(world)
    world.entries.clear()
    world.set_topic("t", 6)
    world.beat("a")
    under_way = world.histories.under_way("g")
    assert under_way is not None
    assert under_way["causes"][0]["why"] == "topics_changed"
    assert under_way["causes"][0]["details"] == ["t: 4 to 6 partitions"]
    world.beat("b", -1)
    world.beat("a")
    assert world.whys() == [["topics_changed", "left"]]
    world.set_topic("u", 1)
    world.beat("a", subscribed_topics=frozenset({"t", "u"}))
    assert world.whys() == [["subscription_changed"]]
    timeout_ms = world.decide(lambda step: world.shard.consumer_step(step, "g")).settings
    world.advance(timeout_ms.session_timeout_ms)
    (entry,) = world.entries
    assert (entry["end"], entry["causes"][0]["why"]) == ("empty", "session_expired")
    assert entry["causes"][0]["waited_ms"] == timeout_ms.session_timeout_ms


def test_a_consumer_that_keeps_what_it_is_to_give_up() -> None:
    world = World()
    world.set_topic("t", 4)
    world.beat("a", subscribed_topics=T, rebalance_timeout_ms=5_000, owned={})
    world.beat("b", subscribed_topics=T, rebalance_timeout_ms=5_000, owned={})
    world.beat("a")
    world.entries.clear()
    world.advance(5_000)
    under_way = world.histories.under_way("g")
    assert under_way is not None
    assert under_way["causes"][1]["why"] == "rebalance_timeout"
    assert under_way["causes"][1]["waited_ms"] == 5_000
    world.beat("b")
    (entry,) = world.entries
    assert [(each["from"] and each["from"]["id"], each["to"]["id"]) for each in entry["moves"]] == [
        ("a", "b")
    ]


def test_a_regular_expression_that_matches_a_new_topic() -> None:
    world = World()
    world.set_topic("t", 1)
    world.beat("a", subscribed_regex="t.*", rebalance_timeout_ms=5_000, owned={})

    def match(*names: str) -> None:
        def work(step: Any) -> None:
            inner = world.shard.consumer_step(step, "g")
            group = world.shard.consumer.groups["g"]
            resolved({"t.*": names}, world.topics.version, group, world.topics, inner)
            step.records += inner.records
            step.committed += inner.committed

        world.decide(work)
        world.beat("a")

    match("t")
    world.entries.clear()
    world.set_topic("t2", 1)
    match("t", "t2")
    (entry,) = world.entries
    assert entry["causes"][0]["why"] == "regex_matched"
    assert entry["causes"][0]["details"] == ["t.* matches t2"]
    assert [each["topic"] for each in entry["moves"]] == ["t2"]


def test_a_static_consumer_that_returns_while_the_group_is_not_stable() -> None:
    world = World()
    world.set_topic("t", 2)
    said: Any = {"subscribed_topics": T, "rebalance_timeout_ms": 5_000, "owned": {}}
    world.beat("a", instance_id="i-1", **said)
    world.beat("a", -2, instance_id="i-1")
    world.beat("b", **said)
    world.entries.clear()
    world.beat("a2", instance_id="i-1", **said)
    under_way = world.histories.under_way("g")
    assert under_way is not None
    assert under_way["causes"][-1] | {"at_ms": 0, "member": None} == {
        "why": "replaced", "at_ms": 0, "member": None, "other_id": "a",
    }  # fmt: skip
    world.beat("b")
    assert [each["end"] for each in world.entries] == ["stable"]


def test_conversions_in_both_directions_are_told() -> None:
    world = World()
    world.set_topic("t", 4)
    world.join("a")
    world.sync(a=4)
    world.entries.clear()
    world.beat("b", subscribed_topics=T, rebalance_timeout_ms=5_000, owned={})
    under_way = world.histories.under_way("g")
    assert under_way is not None
    assert [each["why"] for each in under_way["causes"]] == ["upgraded", "joined"]
    world.beat("b", -1)
    under_way = world.histories.under_way("g")
    assert under_way is not None
    assert [each["why"] for each in under_way["causes"]][2:] == ["left", "downgraded"]


def test_a_share_group() -> None:
    world = World()
    world.set_topic("t", 4)
    world.share_beat("a", subscribed_topics=T)
    begun = {topic_id("t"): frozenset(range(4))}
    world.decide(
        lambda step: world.shard.share_decision(
            "g", step, lambda shares, topics, inner: states_answered(shares, begun, topics, inner)
        )
    )
    world.share_beat("a")
    assert world.whys() == [["joined"], ["states_changed"]]
    world.share_beat("b", subscribed_topics=T)
    world.share_beat("a")
    (entry,) = world.entries
    assert (entry["type"], entry["end"]) == ("share", "stable")
    assert {each["to"] and each["to"]["id"] for each in entry["moves"]} == {"b", None}
    world.entries.clear()
    world.share_beat("b", -1)
    timeout_ms = 45_000
    world.advance(timeout_ms)
    (entry,) = world.entries
    assert [each["why"] for each in entry["causes"]] == ["left", "session_expired"]
    assert (entry["end"], entry["causes"][1]["waited_ms"]) == ("empty", timeout_ms)


def joins(process: str) -> dict[str, Any]:
    return {"topology": STATEFUL, "process_id": process, "rebalance_timeout_ms": REBALANCE_MS}


def test_a_streams_group() -> None:
    world = World()
    world.set_topic("t", 4)
    world.streams_beat("a", **joins("p"))
    world.set_topic("c", 4)
    world.streams_beat("a")
    world.streams_beat("a")
    assert world.whys() == [["joined"], ["topics_changed"]]
    all_of_a = {"0": frozenset(range(4))}
    world.streams_beat("b", **joins("q"))
    world.streams_beat("a", has=all_of_a)
    world.streams_beat("a", has={"0": frozenset({0, 1})})
    world.streams_beat("b")
    (entry,) = world.entries
    assert (entry["type"], entry["end"], entry["members"]) == ("streams", "stable", 2)
    (move,) = entry["moves"]
    assert (move["topic"], move["from"]["id"], move["to"]["id"]) == ("0", "a", "b")
    assert (moved_text(entry), entry["moved"]) == ("2 tasks moved", 2)
    assert moves_texts(entry)[0].startswith("subtopology 0 ")
    world.entries.clear()
    world.streams = replace(world.streams, num_standby_replicas=1)
    world.streams_beat("b", process_id="r")
    world.streams_beat("b", -1)
    world.advance(45_000)
    (entry,) = world.entries
    assert [each["why"] for each in entry["causes"]] == ["said_other", "left", "session_expired"]
    assert (entry["end"], entry["causes"][2]["waited_ms"]) == ("empty", 45_000)


def test_a_streams_group_with_other_settings() -> None:
    world = World()
    world.set_topic("t", 4)
    world.set_topic("c", 4)
    world.streams_beat("a", **joins("p"))
    world.entries.clear()
    world.streams = replace(world.streams, num_standby_replicas=1)
    world.streams_beat("a", has={"0": frozenset(range(4))})
    (entry,) = world.entries
    assert causes_texts(entry) == ["the group's settings changed: num.standby.replicas=1"]


def test_a_streams_member_that_keeps_its_tasks_too_long() -> None:
    world = World()
    world.set_topic("t", 4)
    world.set_topic("c", 4)
    world.streams_beat("a", **joins("p"))
    world.streams_beat("b", **joins("q"))
    for _ in range(3):
        world.streams_beat("a", has={"0": frozenset(range(4))})
        world.streams_beat("b")
        world.advance(REBALANCE_MS // 3)
    found = [cause for each in world.entries for cause in each["causes"]]
    under_way = world.histories.under_way("g")
    found += [] if under_way is None else under_way["causes"]
    assert [each["why"] for each in found] == ["joined", "joined", "rebalance_timeout"]
    assert found[-1]["waited_ms"] == REBALANCE_MS


def test_a_refused_decision_notes_nothing() -> None:
    world = World()
    two_consumers(world)
    world.entries.clear()
    with pytest.raises(ApiError):
        world.beat("stranger", 7)
    assert (world.entries, world.histories.under_way("g")) == ([], None)


def test_a_coordinator_that_begins_anew_ends_what_was_under_way() -> None:
    world = World()
    world.set_topic("t", 4)
    two_consumers(world)
    world.beat("c", subscribed_topics=T, rebalance_timeout_ms=5_000, owned={})
    world.entries.clear()
    (entry,) = world.histories.fold(Loaded(("g", "other"), world.now_ms))
    assert (entry["end"], entry["causes"][0]["why"]) == ("lost", "joined")


def test_groups_of_all_types_are_told_of_when_they_are_loaded() -> None:
    shard, step = GroupShard(), Step(1_000, GroupSettings())
    shard.groups["classic"] = ClassicGroup("classic", 0)
    shard.consumer.groups["consumer"] = ConsumerGroup("consumer")
    shard.share.groups["share"] = ShareGroup("share")
    shard.streams.groups["streams"] = StreamsGroup("streams")
    shard.loaded(step)
    (loaded,) = step.committed
    assert isinstance(loaded, Loaded)
    assert sorted(loaded.groups) == ["classic", "consumer", "share", "streams"]


def test_a_member_that_is_fenced_again_and_again_is_told_of_once_a_minute() -> None:
    world = World()

    def fenced() -> int:
        cause = Cause(Why.FENCED, Who("a"))
        return len(world.histories.fold(Happened("g", CONSUMER, -1, world.now_ms, cause)))

    assert (fenced(), fenced()) == (1, 0)
    world.now_ms += 60_000
    assert fenced() == 1
