"""What is applied while a shard is loaded, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.coordinator.coordinator_log import LogMarker, LogRecord
from ottla.coordinator.loading import Loading
from ottla.coordinator.shard_kind import ShardKind
from ottla.shards.step import ProducerEpoch, TransactionMarker

PRODUCER = ProducerEpoch(7, 2)
MARKER = TransactionMarker(PRODUCER, True, 5)


class Seen:
    def __init__(self) -> None:
        self.applied: list[Any] = []

    def apply(self, record: Any, offset: int, timestamp_ms: int, producer: Any) -> None:
        self.applied.append(offset)

    def apply_marker(self, marker: TransactionMarker, offset: int) -> None:
        assert marker == MARKER
        self.applied.append(f"marker {offset}")


async def applied(records: Sequence[LogRecord | LogMarker], **fields: Any) -> list[Any]:
    kind: ShardKind[Any] = ShardKind(
        topic="t",
        settings=None,
        new_shard=Seen,
        encode=lambda record: record,
        decode=lambda key, value: (key, value),
        commit_timeout_ms=1,
        **fields,
    )
    log: Any = type("Log", (), {"read_all": lambda self: iter(records)})()
    shard: Any = Seen()
    last = await Loading(kind, shard, log, "t-0").run()
    assert last == (records[-1].offset if records else -1)
    return list(shard.applied)


def record(offset: int, key: bytes, producer: ProducerEpoch | None = None) -> LogRecord:
    return LogRecord(offset, key, b"", 1, producer)


LOG: list[LogRecord | LogMarker] = [
    record(0, b"a"),
    record(1, b"b"),
    record(2, b"a"),
    record(3, b"a", PRODUCER),
    record(4, b"b"),
    record(5, b"b"),
    LogMarker(6, MARKER),
    record(7, b"a"),
    record(9, b"a"),
]


async def test_everything_is_applied_in_order() -> None:
    assert await applied(LOG) == [0, 1, 2, 3, 4, 5, "marker 6", 7, 9]
    assert await applied([]) == []


async def test_only_the_newest_of_each_key_where_that_suffices() -> None:
    """But never across a transaction's records or its end."""
    assert await applied(LOG, newest_suffices=True) == [1, 2, 3, 5, "marker 6", 9]


async def test_a_run_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.coordinator.loading.MAX_RUN_KEYS", 2)
    records = [record(0, b"a"), record(1, b"a"), record(2, b"b"), record(3, b"a")]
    assert await applied(records, newest_suffices=True) == [1, 2, 3]
