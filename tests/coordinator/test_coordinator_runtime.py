"""The runtime over a kind of shard that has everything: transactions, markers, work on commit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.coordinator.coordinator_log import LogMarker, LogRecord
from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.coordinators import Coordinators
from ottla.coordinator.shard_kind import ShardKind
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch, Step, TransactionMarker

PRODUCER = ProducerEpoch(7, 2)
COMMIT = TransactionMarker(PRODUCER, True, 5)
ABORT = TransactionMarker(PRODUCER, False, 5)


class Tally:
    """Counts per key; a transaction's counts are added when it commits."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}
        self.open: list[tuple[str, int]] = []
        self.applied: list[Any] = []
        self.timers: list[Any] = []

    def apply(
        self,
        record: tuple[str, int],
        offset: int,
        timestamp_ms: int,
        producer: ProducerEpoch | None,
    ) -> None:
        self.applied.append((offset, *record, timestamp_ms, producer))
        if producer is None:
            self._add(*record)
        else:
            self.open.append(record)

    def _add(self, key: str, amount: int) -> None:
        self.totals[key] = self.totals.get(key, 0) + amount

    def apply_marker(self, marker: TransactionMarker, offset: int) -> None:
        self.applied.append((offset, marker))
        for record in self.open if marker.is_commit else ():
            self._add(*record)
        self.open.clear()

    def loaded(self, step: Step[Any, Any, Any]) -> None:
        step.committed.append(("loaded", dict(self.totals)))

    def expired(self, event: Any, step: Step[Any, Any, Any]) -> None:
        step.records.append((event, 1))

    def unloaded(self, step: Step[Any, Any, Any]) -> None:
        pass


def encode(record: tuple[str, int]) -> tuple[bytes, bytes]:
    return record[0].encode(), b"%d" % record[1]


def decode(key: bytes, value: bytes | None) -> tuple[str, int] | None:
    return None if value is None else (key.decode(), int(value))


class Bench:
    def __init__(self, logs: Any, clock: Any, **fields: Any) -> None:
        self.work: list[Any] = []
        kind = ShardKind(
            topic="__tally",
            settings=None,
            new_shard=Tally,
            encode=encode,
            decode=decode,
            commit_timeout_ms=60_000,
            on_committed=self.work.append,
            **fields,
        )
        self.runtime = CoordinatorRuntime(kind, logs, clock)

    @property
    def shard(self) -> Tally:
        return self.runtime._partitions[0].shard

    async def add(self, *records: tuple[str, int], producer: ProducerEpoch | None = None) -> None:
        def decide(shard: Tally, step: Step[Any, Any, Any]) -> None:
            step.records += records
            step.producer = producer
            step.committed.append(records)

        await self.runtime.decide(0, decide)

    async def end(self, marker: TransactionMarker) -> None:
        def decide(shard: Tally, step: Step[Any, Any, Any]) -> None:
            step.marker = marker
            step.committed.append(marker)

        await self.runtime.decide(0, decide)


def count_appends(log: Any) -> list[Any]:
    """The records of each append from now on, refused or not."""
    appends: list[Any] = []
    append = log.append

    def counted(records: Any, *others: Any) -> int:
        appends.append(records)
        offset: int = append(records, *others)
        return offset

    log.append = counted
    return appends


@pytest.fixture
def logs(memory_logs: Any) -> Any:
    return memory_logs(1)


async def test_records_of_a_transaction_count_when_its_marker_is_applied(
    logs: Any, clock: Any
) -> None:
    bench = Bench(logs, clock)
    await bench.add(("a", 1))
    await bench.add(("a", 10), producer=PRODUCER)
    assert bench.shard.totals == {"a": 1}
    await bench.end(COMMIT)
    assert bench.shard.totals == {"a": 11}
    await bench.add(("a", 100), producer=PRODUCER)
    await bench.end(ABORT)
    assert bench.shard.totals == {"a": 11}
    applied = bench.shard.applied
    now_ms = clock.now_ms()
    assert logs.open(0).records == [
        LogRecord(0, b"a", b"1", now_ms),
        LogRecord(1, b"a", b"10", now_ms, PRODUCER),
        LogMarker(2, COMMIT),
        LogRecord(3, b"a", b"100", now_ms, PRODUCER),
        LogMarker(4, ABORT),
    ]
    bench.runtime.close()
    again = Bench(logs, clock)
    await again.runtime.decide(0, lambda shard, step: None)
    assert again.shard.applied == applied
    assert again.shard.totals == {"a": 11}


async def test_work_is_done_when_its_step_is_committed(logs: Any, clock: Any) -> None:
    bench = Bench(logs, clock)
    await bench.add(("a", 1))
    assert bench.work == [("loaded", {}), (("a", 1),)]
    log = logs.open(0)
    log.hold()
    adding = asyncio.create_task(bench.add(("a", 2)))
    await asyncio.sleep(0.01)
    assert bench.shard.totals == {"a": 3}
    assert len(bench.work) == 2
    log.release()
    await adding
    while len(bench.work) < 3:
        await asyncio.sleep(0)
    assert bench.work[2] == (("a", 2),)


async def test_work_is_dropped_with_the_partition(logs: Any, clock: Any) -> None:
    bench = Bench(logs, clock)
    await bench.add(("a", 1))
    logs.open(0).hold()
    adding = asyncio.create_task(bench.add(("a", 2)))
    await asyncio.sleep(0.01)
    bench.runtime.resigned(0)
    logs.open(0).release()
    with pytest.raises(ApiError) as refused:
        await adding
    assert refused.value.code is ErrorCode.not_coordinator
    assert len(bench.work) == 2


async def test_a_kind_may_load_as_soon_as_it_is_elected(logs: Any, clock: Any) -> None:
    first = Bench(logs, clock)
    await first.add(("a", 1))
    first.runtime.close()
    bench = Bench(logs, clock, loads_when_elected=True)
    Coordinators([bench.runtime]).start()
    while not bench.work:
        await asyncio.sleep(0)
    assert bench.work == [("loaded", {"a": 1})]


async def test_a_kind_has_errors_of_its_own(logs: Any, clock: Any) -> None:
    bench = Bench(logs, clock, error_of=lambda code: ErrorCode.concurrent_transactions)
    logs.open(0).refuse = ErrorCode.not_enough_replicas
    with pytest.raises(ApiError) as refused:
        await bench.add(("a", 1))
    assert refused.value.code is ErrorCode.concurrent_transactions
    assert bench.shard.totals == {}


async def test_a_timer_whose_record_is_refused_harms_nobody(logs: Any, clock: Any) -> None:
    bench = Bench(logs, clock)
    await bench.add(("a", 1))
    log = logs.open(0)
    appends = count_appends(log)
    log.refuse = ErrorCode.not_enough_replicas

    def set_timer(shard: Tally, step: Step[Any, Any, Any]) -> None:
        step.set_timer("late", 0, "b")

    await bench.runtime.decide(0, set_timer)
    while len(appends) < 1:
        await asyncio.sleep(0)
    assert bench.shard.totals == {"a": 1}
    log.refuse = None
    await bench.runtime.decide(0, set_timer)
    while len(appends) < 2:
        await asyncio.sleep(0)
    assert bench.shard.totals == {"a": 1, "b": 1}


async def test_a_write_that_is_refused_is_left_out(
    logs: Any, clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(logs, clock)
    logs.open(0).refuse = ErrorCode.not_enough_replicas
    with caplog.at_level("INFO"):
        await bench.runtime.write(0, lambda shard, step: step.records.append(("a", 1)))
    assert bench.shard.totals == {}
    assert "__tally-0: coordinator_not_available" in caplog.text


async def test_a_verification_has_the_errors_of_the_kind(logs: Any, clock: Any) -> None:
    bench = Bench(logs, clock, error_of=lambda code: ErrorCode.concurrent_transactions)
    await bench.add(("a", 1))
    partition = bench.runtime._partitions[0]
    logs.open(0).refuse = ErrorCode.invalid_producer_epoch
    with pytest.raises(ApiError) as refused:
        partition.begin_verification(PRODUCER, version_2=True)
    assert refused.value.code is ErrorCode.concurrent_transactions
    bench.runtime.resigned(0)
    with pytest.raises(ApiError) as refused:
        partition.begin_verification(PRODUCER, version_2=True)
    assert refused.value.code is ErrorCode.not_coordinator


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ApiError(ErrorCode.not_enough_replicas), ErrorCode.concurrent_transactions),
        (TimeoutError(), ErrorCode.coordinator_not_available),
    ],
)
async def test_what_is_not_committed_has_an_error(
    logs: Any, clock: Any, monkeypatch: pytest.MonkeyPatch, failure: Exception, code: ErrorCode
) -> None:
    bench = Bench(logs, clock, error_of=lambda code: ErrorCode.concurrent_transactions)
    await bench.add(("a", 1))

    async def fails(offset: int) -> bool:
        raise failure

    log = logs.open(0)
    monkeypatch.setattr(log, "committed", fails)
    log.hold()
    with pytest.raises(ApiError) as refused:
        await bench.add(("a", 1))
    assert refused.value.code is code
    assert len(bench.work) == 2, "what waits for the commit is dropped"


async def test_only_an_internal_topic_in_the_table_has_a_coordinator(logs: Any, clock: Any) -> None:
    bench = Bench(logs, clock)
    await bench.add(("a", 1))
    coordinators = Coordinators([bench.runtime])
    coordinators.resigned("another", 0)
    assert 0 in bench.runtime._partitions
    coordinators.resigned("__tally", 0)
    assert 0 not in bench.runtime._partitions
