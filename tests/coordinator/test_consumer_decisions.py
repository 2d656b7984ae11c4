"""Large groups decide in a thread, on a copy."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from tests.coordinator.long_decisions import LongDecisions

from ottla.coordinator.consumer_decisions import ConsumerDecisions
from ottla.groups.classic.requests import JoinRequest
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.large import MAX_AT_ONCE
from ottla.groups.consumer.requests import HeartbeatRequest
from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.shard import GroupShard
from ottla.groups.share.requests import HeartbeatRequest as ShareHeartbeat
from ottla.groups.stored import CoordinatorRecord, GroupMetadataKey, GroupMetadataValue
from ottla.protocol.errors import ApiError, ErrorCode

TOPICS = Topics(1, {"large": Topic(UUID(int=1), MAX_AT_ONCE), "small": Topic(UUID(int=2), 4)})


def joining(member: str, topic: str = "large") -> HeartbeatRequest:
    return HeartbeatRequest(
        "g", member, 0, "client", "/127.0.0.1", rebalance_timeout_ms=60_000,
        subscribed_topics=frozenset({topic}), owned={},
    )  # fmt: skip


class Bench(LongDecisions):
    def __init__(self, log: Any, clock: Any) -> None:
        super().__init__(log, clock, TOPICS)
        self.decisions = ConsumerDecisions(self.runtime, self.run_long)

    async def members(self) -> list[str]:
        return await self.runtime.decide(
            0, lambda shard, _: list(shard.consumer.groups["g"].members)
        )


@pytest.fixture
async def bench(memory_logs: Any, clock: Any) -> Any:
    made = Bench(memory_logs(1).open(0), clock)
    yield made
    made.runtime.close()


async def test_a_small_group_decides_at_once(bench: Bench) -> None:
    result = await bench.decisions.heartbeat(0, joining("a", "small"), 1)
    assert (result.member_id, result.epoch, bench.long) == ("a", 2, 0)


def empty_classic(shard: GroupShard, step: Any) -> None:
    value = GroupMetadataValue("", 0, None, None, step.now_ms, ())
    step.records.append(CoordinatorRecord(GroupMetadataKey("g"), value))


async def test_a_large_group_replaces_an_empty_classic_one_in_the_thread(bench: Bench) -> None:
    await bench.runtime.decide(0, empty_classic)
    result = await bench.decisions.heartbeat(0, joining("a"), 1)
    assert (result.epoch, bench.long, await bench.members()) == (2, 1, ["a"])
    assert await bench.runtime.decide(0, lambda shard, _: "g" in shard.groups) is False


async def test_the_members_of_a_large_group_take_turns(bench: Bench) -> None:
    names = ["a", "b", "c"]
    answers = await asyncio.gather(
        *(bench.decisions.heartbeat(0, joining(name), 1) for name in names)
    )
    assert [answer.epoch for answer in answers] == [2, 2, 2]
    assert (await bench.members(), bench.long) == (names, 3)


def classic(topic: str, member_id: str = "") -> JoinRequest:
    metadata = b"\0\0\0\0\0\1\0\5" + topic.encode() + b"\xff" * 4
    return JoinRequest(
        None, "g", member_id, None, "new", "client", "/127.0.0.1", 10_000, 60_000, "consumer",
        (("range", metadata),), requires_known_member_id=False,
    )  # fmt: skip


async def test_a_classic_member_of_a_large_group_does_not_hold_the_loop(bench: Bench) -> None:
    assert await bench.decisions.join(0, classic("large")) is None, "no such consumer group"
    await bench.decisions.heartbeat(0, joining("a"), 1)
    assert bench.long == 1
    result = await bench.decisions.join(0, classic("large"))
    assert result is not None
    assert (result.error, result.generation, result.member_id) == (ErrorCode.none, 2, "new")
    assert (await bench.members(), bench.long) == (["a", "new"], 2)

    def told(shard: GroupShard, _: Any) -> None:
        shard.consumer.groups["g"].awaited_joins["new"] = None

    await bench.runtime.decide(0, told)
    assert await bench.decisions.join(0, classic("large", "new"))
    awaited = await bench.runtime.decide(
        0, lambda shard, _: dict(shard.consumer.groups["g"].awaited_joins)
    )
    assert awaited == {}, "it may be told again"


async def test_a_classic_member_of_a_small_group_is_decided_at_once(bench: Bench) -> None:
    await bench.decisions.heartbeat(0, joining("a", "small"), 1)
    assert await bench.decisions.join(0, classic("small")) is None
    assert await bench.decisions.join(0, classic("large")), "it makes the group a large one"
    assert bench.long == 1


async def test_it_is_decided_again_where_the_group_has_changed_meanwhile(bench: Bench) -> None:
    await bench.decisions.heartbeat(0, joining("a"), 1)

    async def leave() -> None:
        request = HeartbeatRequest("g", "a", -1, "client", "/127.0.0.1")

        def decide(shard: GroupShard, step: Any) -> None:
            inner = shard.consumer_step(step, "g")
            shard.consumer.heartbeat(request, TOPICS, inner)
            step.records += inner.records

        await bench.runtime.decide(0, decide)

    bench.before = leave
    await bench.decisions.heartbeat(0, joining("b"), 1)
    assert (await bench.members(), bench.long) == (["b"], 3)


async def test_it_is_decided_again_where_the_groups_were_loaded_again(bench: Bench) -> None:
    """The log may have other records of the group than before, although as many."""
    await bench.decisions.heartbeat(0, joining("a"), 1)

    async def fail_over() -> None:
        bench.runtime.elected(0)

    bench.before = fail_over
    answer = await bench.decisions.heartbeat(0, joining("b"), 1)
    assert (answer.member_id, await bench.members(), bench.long) == ("b", ["a", "b"], 3)


async def test_a_group_of_another_type_has_taken_the_name_meanwhile(bench: Bench) -> None:
    """A name is that of one group."""

    async def take() -> None:
        request = ShareHeartbeat("g", "x", 0, "client", "/127.0.0.1", None, frozenset({"small"}))
        await bench.runtime.decide(0, lambda shard, step: shard.share_heartbeat(request, step))

    bench.before = take
    with pytest.raises(ApiError, match="Group g is not a consumer group") as refused:
        await bench.decisions.heartbeat(0, joining("a"), 1)
    assert refused.value.code is ErrorCode.group_id_not_found
    there = await bench.runtime.decide(
        0, lambda shard, _: ([*shard.consumer.groups], [*shard.share.groups])
    )
    assert there == ([], ["g"])


async def test_a_heartbeat_copies_the_group_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = []
    copied = ConsumerGroup.copied

    def counted(group: ConsumerGroup) -> ConsumerGroup:
        copies.append(group.group_id)
        return copied(group)

    monkeypatch.setattr(ConsumerGroup, "copied", counted)
    names = ["a", "b", "c"]
    await asyncio.gather(*(bench.decisions.heartbeat(0, joining(name), 1) for name in names))
    assert len(copies) == 3


async def test_a_refusal_in_the_thread_is_the_answer(bench: Bench) -> None:
    await bench.decisions.heartbeat(0, joining("a"), 1)
    with pytest.raises(ApiError) as refused:
        await bench.decisions.heartbeat(
            0, joining("b")._replace(epoch=7, subscribed_topics=frozenset({"large"})), 1
        )
    assert refused.value.code is ErrorCode.unknown_member_id


async def test_expressions_of_a_group_that_is_gone(bench: Bench) -> None:
    await bench.decisions.regexes_resolved(0, "g", {"l.*": ("large",)}, 1)
    assert bench.long == 0


async def test_what_expressions_match_is_stored(bench: Bench) -> None:
    request = joining("a")._replace(subscribed_topics=frozenset(), subscribed_regex="l.*")
    result = await bench.decisions.heartbeat(0, request, 1)
    assert result.due_regexes == ("l.*",)
    await bench.decisions.regexes_resolved(0, "g", {"l.*": ("large",)}, 1)
    found = await bench.runtime.decide(0, lambda shard, _: shard.consumer.groups["g"])
    assert (found.regexes["l.*"].topics, found.regex_version) == (("large",), 1)


async def test_expressions_are_due_again_where_what_they_match_could_not_be_stored(
    bench: Bench,
) -> None:
    request = joining("a")._replace(subscribed_topics=frozenset(), subscribed_regex="l.*")
    await bench.decisions.heartbeat(0, request, 1)
    await bench.decisions.regexes_resolved(0, "g", {"l.*": ("large",)}, 1)
    bench.log.refuse = ErrorCode.not_enough_replicas
    with pytest.raises(ApiError):
        await bench.decisions.regexes_resolved(0, "g", {"l.*": ()}, 2)
    bench.log.refuse = None
    found = await bench.runtime.decide(0, lambda shard, _: shard.consumer.groups["g"])
    assert (found.regexes["l.*"].topics, found.regex_version) == (("large",), 1)
