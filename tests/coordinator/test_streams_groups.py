"""Large streams groups decide in a thread, on a copy."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.coordinator.long_decisions import LongDecisions

from ottla.coordinator.streams_groups import StreamsGroups
from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.shard import GroupShard
from ottla.groups.stored import CoordinatorRecord, GroupMetadataKey, GroupMetadataValue
from ottla.groups.streams.group import Soft
from ottla.groups.streams.large import MAX_AT_ONCE
from ottla.groups.streams.requests import HeartbeatRequest
from ottla.groups.streams.step import FirstAssignmentDue
from ottla.groups.streams.topology import Subtopology, Topology
from ottla.protocol.errors import ApiError, ErrorCode

TOPICS = Topics(1, {"large": Topic(UUID(int=1), MAX_AT_ONCE), "small": Topic(UUID(int=2), 4)})


def joining(member: str, topic: str = "large") -> HeartbeatRequest:
    topology = Topology(0, (Subtopology("0", (topic,), (), (), (), (), ()),))
    return HeartbeatRequest(
        "g", member, 0, "client", "/127.0.0.1", rebalance_timeout_ms=60_000, topology=topology,
        process_id="p",
    )  # fmt: skip


class Bench(LongDecisions):
    def __init__(self, log: Any, clock: Any) -> None:
        super().__init__(log, clock, TOPICS)
        self.groups = StreamsGroups(self.runtime, lambda _: 0, self.run_long)

    async def classic(self, *, is_there: bool = True) -> None:
        """An empty classic group, or none."""

        def decide(shard: GroupShard, step: Any) -> None:
            value = GroupMetadataValue("", 0, None, None, step.now_ms, ()) if is_there else None
            step.records.append(CoordinatorRecord(GroupMetadataKey("g"), value))

        await self.runtime.decide(0, decide)

    async def soft(self) -> Soft:
        return await self.runtime.decide(0, lambda shard, _: shard.streams.groups["g"].soft)

    async def expire(self) -> None:
        """The delay of the first assignment is over."""
        await self.runtime.decide(
            0, lambda shard, step: shard.expired(FirstAssignmentDue("g"), step)
        )

    async def there(self) -> tuple[bool, list[str]]:
        """Whether there is a classic group, and the members of the streams group."""

        def look(shard: GroupShard, _: Any) -> tuple[bool, list[str]]:
            streams = shard.streams.groups.get("g")
            return "g" in shard.groups, [] if streams is None else list(streams.members)

        return await self.runtime.decide(0, look)


@pytest.fixture
async def bench(memory_logs: Any, clock: Any) -> Any:
    made = Bench(memory_logs(1).open(0), clock)
    yield made
    made.runtime.close()


@pytest.mark.parametrize(("topic", "long"), [("small", 0), ("large", 1)])
async def test_a_group_replaces_an_empty_classic_one(bench: Bench, topic: str, long: int) -> None:
    await bench.classic()
    await bench.groups.heartbeat(joining("a", topic))
    assert (await bench.there(), bench.long) == ((False, ["a"]), long)


async def test_a_classic_group_that_is_made_or_gone_meanwhile(bench: Bench) -> None:
    bench.before = bench.classic
    await bench.groups.heartbeat(joining("a"))
    assert await bench.there() == (False, ["a"])


async def test_one_that_is_refused_replaces_nothing(bench: Bench) -> None:
    await bench.classic()
    invalid = joining("a")._replace(topology=Topology(0, (Subtopology("0", *[()] * 6),) * 4_000))
    with pytest.raises(ApiError) as refused:
        await bench.groups.heartbeat(invalid)
    assert refused.value.code is ErrorCode.streams_invalid_topology
    assert await bench.there() == (True, [])


async def test_the_delay_that_ends_while_a_thread_decides_has_ended(bench: Bench) -> None:
    await bench.groups.heartbeat(joining("a"))
    assert (await bench.soft()).is_delayed
    bench.before = bench.expire
    await bench.groups.heartbeat(joining("b"))
    assert (await bench.there())[1] == ["a", "b"]
    assert not (await bench.soft()).is_delayed
    assigned = await bench.groups.heartbeat(joining("a"))
    assert assigned.tasks is not None
    assert assigned.tasks.size == MAX_AT_ONCE // 2


async def test_what_members_say_while_a_thread_decides_is_kept(bench: Bench) -> None:
    """They write no record: neither waits for the other."""
    first = await bench.groups.heartbeat(joining("a"))
    await bench.expire()
    first = await bench.groups.heartbeat(joining("a"))
    beat = HeartbeatRequest("g", "a", first.epoch, "client", "/127.0.0.1")
    long = bench.long

    async def say() -> None:
        said = {("0", 1): 7}
        await bench.groups.heartbeat(beat._replace(task_offsets=said, shuts_down=True))
        assert bench.long == long + 1

    bench.before = say
    await bench.groups.heartbeat(joining("b")._replace(task_offsets={("0", 2): 8}))
    soft = await bench.soft()
    assert soft.shutdown_by == "a"
    assert {name: each.offsets for name, each in soft.task_offsets.items()} == {
        "a": {("0", 1): 7},
        "b": {("0", 2): 8},
    }
