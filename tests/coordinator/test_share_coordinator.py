"""The share coordinator: requests in, answers out, restarts between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.share_coordinator import ShareCoordinator, coordinator_key, share_kind
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.share.record_state import RecordState
from ottla.share.settings import ShareCoordinatorSettings
from ottla.share.shard import ShareShard, Summary
from ottla.share.share_partition import Write
from ottla.share.state_batch import StateBatch
from ottla.share.stored import ShareKey

TOPIC = UUID(int=7)
KEY = ShareKey("g", TOPIC, 0)
ACKED = StateBatch(5, 6, RecordState.ACKNOWLEDGED, 1)


class Bench:
    """A coordinator over logs that outlive it."""

    def __init__(self, logs: Any, clock: Any) -> None:
        self.logs = logs
        self.clock = clock
        self.topics = {TOPIC}
        self.deleted: list[tuple[int, int]] = []
        self.runtime: CoordinatorRuntime[ShareShard]
        self.coordinator = self.start()

    def start(self) -> ShareCoordinator:
        settings = ShareCoordinatorSettings(cold_snapshot_interval_ms=1_000)
        self.runtime = CoordinatorRuntime(share_kind(settings), self.logs, self.clock)
        return ShareCoordinator(
            self.runtime,
            lambda: 4,
            lambda topic_id, index: topic_id in self.topics,
            lambda index, offset: self.deleted.append((index, offset)),
        )

    def restart(self) -> None:
        self.runtime.close()
        self.coordinator = self.start()


@pytest.fixture
async def shares(memory_logs: Any, clock: Any) -> Any:
    bench = Bench(memory_logs(4), clock)
    yield bench
    bench.coordinator.close()
    bench.runtime.close()


async def code(waiting: Any) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        await waiting
    return caught.value.code


async def test_a_state_outlives_its_coordinator(shares: Bench) -> None:
    await shares.coordinator.initialize(KEY, 1, 5)
    assert (await shares.coordinator.read(KEY, 3)).start_offset == 5
    await shares.coordinator.write(KEY, 1, 3, Write(5, 2, [ACKED]))
    shares.restart()
    assert await shares.coordinator.read(KEY, -1) == (1, 5, [ACKED])
    assert await shares.coordinator.summary(KEY) == Summary(1, 3, 5, 2)
    assert await code(shares.coordinator.write(KEY, 1, 2, Write(5, 2, []))) is (
        ErrorCode.fenced_leader_epoch
    )
    await shares.coordinator.delete(KEY)
    assert await shares.coordinator.summary(KEY) == Summary()


async def test_an_answer_waits_for_the_replicas(shares: Bench) -> None:
    log = shares.logs.open(shares.coordinator.partition_for(coordinator_key(KEY)))
    log.hold()
    initializing = asyncio.create_task(shares.coordinator.initialize(KEY, 1, 5))
    await asyncio.sleep(0.01)
    assert not initializing.done()
    log.release()
    await initializing


async def test_keys_are_spread_as_in_kafka(shares: Bench) -> None:
    key = ShareKey("g:h", UUID(hex="00112233445566778899aabbccddeeff"), 12)
    assert coordinator_key(key) == "g:h:ABEiM0RVZneImaq7zN3u_w:12"


async def test_requests_that_make_no_sense_are_refused(shares: Bench) -> None:
    invalid = ErrorCode.invalid_request
    assert await code(shares.coordinator.summary(KEY._replace(group_id=""))) is invalid
    assert await code(shares.coordinator.summary(KEY._replace(group_id="g" * 40_000))) is invalid
    assert await code(shares.coordinator.read(KEY, 1)) is invalid
    other = KEY._replace(topic_id=UUID(int=8))
    assert await code(shares.coordinator.initialize(other, 1, 0)) is (
        ErrorCode.unknown_topic_or_partition
    )


async def test_records_that_nobody_needs_are_deleted(shares: Bench) -> None:
    index = shares.coordinator.partition_for(coordinator_key(KEY))
    await shares.coordinator.initialize(KEY, 1, 5)
    await shares.coordinator.write(KEY, 1, -1, Write(5, 2, [ACKED]))
    await shares.coordinator.prune()
    assert shares.deleted == []
    shares.clock.time_ms += 1_000
    await shares.coordinator.snapshot_cold()
    await shares.coordinator.prune()
    await shares.coordinator.prune()
    assert shares.deleted == [(index, 2)]


def led(shares: Bench) -> Iterator[Any]:
    return (shares.logs.open(index) for index in range(4))


async def test_the_states_of_a_deleted_topic_go(shares: Bench) -> None:
    await shares.coordinator.initialize(KEY, 1, 5)
    await shares.coordinator.topic_deleted(None)
    await shares.coordinator.topic_deleted(TOPIC)
    assert await shares.coordinator.summary(KEY) == Summary()
    # And those of one that was deleted while nobody coordinated.
    await shares.coordinator.initialize(KEY, 1, 5)
    shares.restart()
    shares.topics.clear()
    await shares.coordinator.prune()
    assert sum(record.value is None for log in led(shares) for record in log.records) == 2
