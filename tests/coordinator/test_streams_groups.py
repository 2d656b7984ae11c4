"""Large streams groups decide in a thread, on a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.group_coordinator import group_kind
from ottla.coordinator.streams_groups import StreamsGroups
from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard
from ottla.groups.stored import CoordinatorRecord, GroupMetadataKey, GroupMetadataValue
from ottla.groups.streams.large import MAX_AT_ONCE
from ottla.groups.streams.requests import HeartbeatRequest
from ottla.groups.streams.topology import Subtopology, Topology
from ottla.protocol.errors import ApiError, ErrorCode

TOPICS = Topics(1, {"large": Topic(UUID(int=1), MAX_AT_ONCE), "small": Topic(UUID(int=2), 4)})


def joining(member: str, topic: str = "large") -> HeartbeatRequest:
    topology = Topology(0, (Subtopology("0", (topic,), (), (), (), (), ()),))
    return HeartbeatRequest(
        "g", member, 0, "client", "/127.0.0.1", rebalance_timeout_ms=60_000, topology=topology,
        process_id="p",
    )  # fmt: skip


class Bench:
    """`before` is called before each decision in the thread."""

    def __init__(self, log: Any, clock: Any) -> None:
        kind = group_kind(GroupSettings(), topics=lambda: TOPICS)

        class Led:
            def open(self, index: int) -> Any:
                return log

            def indexes(self) -> range:
                return range(1)

        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(kind, Led(), clock)
        self.groups = StreamsGroups(self.runtime, lambda _: 0, self.run_long)
        self.long = 0
        self.before: Callable[[], Any] | None = None

    async def run_long(self, work: Callable[[], Any]) -> Any:
        self.long += 1
        if self.before is not None:
            before, self.before = self.before, None
            await before()
        return work()

    async def classic(self, *, is_there: bool = True) -> None:
        """An empty classic group, or none."""

        def decide(shard: GroupShard, step: Any) -> None:
            value = GroupMetadataValue("", 0, None, None, step.now_ms, ()) if is_there else None
            step.records.append(CoordinatorRecord(GroupMetadataKey("g"), value))

        await self.runtime.decide(0, decide)

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
