"""Large share groups decide in a thread, on a copy."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from tests.coordinator.long_decisions import LongDecisions

from ottla.coordinator.share_decisions import ShareDecisions
from ottla.groups.aside import Aside
from ottla.groups.consumer.step import SessionExpired
from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.share.administration import (
    alter_offsets,
    begin_offset_removal,
    begin_removal,
    states_answered,
)
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.large import MAX_AT_ONCE
from ottla.groups.share.requests import HeartbeatRequest, HeartbeatResult
from ottla.protocol.errors import ApiError, ErrorCode

LARGE = UUID(int=1)
COUNT = MAX_AT_ONCE + 1
TOPICS = Topics(1, {"large": Topic(LARGE, COUNT), "small": Topic(UUID(int=2), 4)})


class Bench(LongDecisions):
    def __init__(self, log: Any, clock: Any) -> None:
        super().__init__(log, clock, TOPICS)
        self.decisions = ShareDecisions(self.runtime, self.run_long)

    async def beat(self, member: str, epoch: int = 0, topic: str = "large") -> HeartbeatResult:
        topics = frozenset({topic}) if epoch == 0 else None
        request = HeartbeatRequest("g", member, epoch, "client", "/127.0.0.1", None, topics)
        return await self.decisions.heartbeat(0, request)

    async def answered(self, count: int = COUNT) -> None:
        await self.decisions.change(
            0,
            "g",
            lambda group, topics, step: states_answered(
                group, {LARGE: range(count)}, {}, topics, step
            ),
        )

    async def group(self) -> ShareGroup:
        return await self.runtime.decide(0, lambda shard, _: shard.share.groups["g"])


@pytest.fixture
async def bench(memory_logs: Any, clock: Any) -> Any:
    made = Bench(memory_logs(1).open(0), clock)
    yield made
    made.runtime.close()


async def test_a_small_group_decides_at_once(bench: Bench) -> None:
    assert (await bench.beat("a", topic="small")).epoch == 2
    assert bench.long == 0


async def test_a_large_group_assigns_in_the_thread(bench: Bench, clock: Any) -> None:
    joined = await bench.beat("a")
    assert joined.to_initialize is not None
    assert bench.long == 1
    await bench.answered()
    assert bench.long == 2
    clock.time_ms += 2_000
    found = await bench.beat("a", joined.epoch)
    assert found.assignment == {LARGE: frozenset(range(COUNT))}
    assert bench.long == 3
    await bench.beat("a", found.epoch)
    long = bench.long
    await bench.beat("a", found.epoch)
    assert bench.long == long, "nothing is new"


async def test_the_members_of_a_large_group_take_turns(bench: Bench) -> None:
    answers = await asyncio.gather(*map(bench.beat, ("a", "b", "c")))
    assert sorted(answer.epoch for answer in answers) == [2, 2, 2]
    assert (sorted((await bench.group()).members), bench.long) == (["a", "b", "c"], 3)


async def test_it_is_decided_again_where_the_group_has_changed_meanwhile(bench: Bench) -> None:
    await bench.beat("a")

    async def expire() -> None:
        await bench.runtime.decide(
            0,
            lambda shard, step: shard.share_decision(
                "g",
                step,
                lambda share, topics, inner: share.expired(SessionExpired("g", "a"), topics, inner),
            ),
        )

    bench.before = expire
    await bench.beat("b")
    assert (list((await bench.group()).members), bench.long) == (["b"], 3)


async def test_it_is_decided_again_where_the_groups_were_loaded_again(bench: Bench) -> None:
    await bench.beat("a")

    async def fail_over() -> None:
        bench.runtime.elected(0)

    bench.before = fail_over
    await bench.beat("b")
    assert (list((await bench.group()).members), bench.long) == (["a", "b"], 3)


async def test_a_heartbeat_that_waits_for_the_thread_came_in_time(bench: Bench) -> None:
    """The member's session does not expire before its turn."""
    joined = await bench.beat("a")
    await bench.answered()

    def arrive(epoch: int, shard: Any, step: Any) -> tuple[Any, list[Any]]:
        request = HeartbeatRequest("g", "a", epoch, "client", "/127.0.0.1", None, None)
        return shard.share_heartbeat(request, step), [each.event for each in step.timers]

    aside, timers = await bench.runtime.decide(0, partial(arrive, joined.epoch))
    assert isinstance(aside, Aside)
    assert timers == [SessionExpired("g", "a")]
    aside, timers = await bench.runtime.decide(0, partial(arrive, joined.epoch + 7))
    assert timers == []


async def test_a_refusal_in_the_thread_is_the_answer(bench: Bench) -> None:
    await bench.beat("a")
    with pytest.raises(ApiError) as refused:
        await bench.beat("b", 7)
    assert refused.value.code is ErrorCode.unknown_member_id


async def test_states_of_a_group_that_is_gone(bench: Bench) -> None:
    with pytest.raises(ApiError) as refused:
        await bench.answered()
    assert refused.value.code is ErrorCode.group_id_not_found
    assert bench.long == 0


async def test_administrators_change_large_groups_in_the_thread(bench: Bench) -> None:
    """A request that names many partitions makes a large group, too; it may be a new one."""
    altered = await bench.decisions.change(
        0,
        "g",
        lambda group, topics, step: alter_offsets(
            group, {"large": dict.fromkeys(range(COUNT + 1), 5)}, topics, step
        ),
        more=COUNT,
        may_be_new=True,
    )
    assert altered.unknown == {("large", COUNT)}
    assert bench.long == 1
    await bench.answered()
    forgotten = await bench.decisions.change(
        0, "g", lambda group, topics, step: begin_offset_removal(group, ["large"], topics, step)
    )
    assert forgotten == {LARGE: frozenset(range(COUNT))}
    # Partitions of a topic that is being forgotten count, too.
    assert await bench.decisions.change(0, "g", begin_removal) == forgotten
    assert bench.long == 4


async def test_a_member_that_joins_meanwhile_is_seen(bench: Bench) -> None:
    await bench.decisions.change(
        0, "g", lambda group, topics, step: alter_offsets(group, {"small": {0: 5}}, topics, step),
        may_be_new=True,
    )  # fmt: skip

    async def join() -> None:
        await bench.beat("a", topic="small")

    bench.before = join
    with pytest.raises(ApiError) as refused:
        await bench.decisions.change(0, "g", begin_removal, more=COUNT)
    assert refused.value.code is ErrorCode.non_empty_group
    assert bench.long == 2
