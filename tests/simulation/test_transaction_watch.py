"""Which transactions are stuck: a coordinator's state, seen while the cluster is calm."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from simulation.transaction_watch import (
    ABORTED_WITHIN_MS,
    COMPLETED_WITHIN_MS,
    TransactionWatch,
)
from simulation.violation import Violation

from ottla.transactions.state import TransactionState
from ottla.transactions.stored import TopicPartition, TransactionValue

TIMEOUT_MS = 1_000


@dataclass
class Shown:
    """What the watch looks at: one broker that coordinates one transactional id."""

    wrong: str | None = None
    cuts: dict[str, None] = field(default_factory=dict)
    now_ms: int = 0
    ahead_ms: int = 0
    value: TransactionValue | None = None
    leader: int = 1
    stalled_until_ms: int = -1
    lost: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.loop: Any = self
        self.network: Any = self
        self.invariants: Any = self
        clock = SimpleNamespace(now_ms=lambda: self.now_ms + self.ahead_ms)
        shard = SimpleNamespace(transactions={})
        partition = SimpleNamespace(is_active=True, shard=shard)
        runtime = SimpleNamespace(_partitions={0: partition})
        node = SimpleNamespace(transactions=SimpleNamespace(_runtime=runtime))
        self.brokers = {1: SimpleNamespace(number=1, node=node, clock=clock)}
        self.shard = shard

    def unhealed(self) -> str | None:
        return self.wrong

    def forgiven(self, topic: str) -> set[int]:
        return self.lost

    def state(self, topic: str, index: int) -> dict[str, int]:
        return {"leader": self.leader}

    def has(self, state: TransactionState, *partitions: int) -> None:
        self.shard.transactions["x"] = TransactionValue(
            producer_id=1,
            epoch=0,
            timeout_ms=TIMEOUT_MS,
            state=state,
            partitions=frozenset(TopicPartition("w", each) for each in partitions),
            last_update_ms=0,
            start_ms=0,
        )


@pytest.fixture
def shown() -> Shown:
    return Shown()


def violation(shown: Shown, watch: TransactionWatch, *at_ms: int) -> str | None:
    for shown.now_ms in at_ms:
        try:
            watch.check()
        except Violation as error:
            return f"{shown.now_ms}: {error}"
    return None


def test_an_open_transaction_is_aborted_soon_after_its_timeout(shown: Any) -> None:
    shown.has(TransactionState.ONGOING, 0)
    watch = TransactionWatch(shown)
    overdue = TIMEOUT_MS + 1
    last = overdue + ABORTED_WITHIN_MS
    found = violation(shown, watch, 0, TIMEOUT_MS, overdue, last, last + 1)
    assert found is not None
    assert found.startswith(f"{last + 1}: x is stuck in ONGOING for {ABORTED_WITHIN_MS + 1} ms")


def test_a_coordinator_that_lost_records_may_give_up(shown: Any) -> None:
    shown.has(TransactionState.PREPARE_COMMIT, 0)
    shown.lost = {0}
    assert violation(shown, TransactionWatch(shown), 0, COMPLETED_WITHIN_MS + 1) is None
    shown.lost = {1}
    assert violation(shown, TransactionWatch(shown), 0, COMPLETED_WITHIN_MS + 1) is not None


def test_the_coordinators_clock_decides_when_the_time_is_over(shown: Any) -> None:
    shown.has(TransactionState.ONGOING, 0)
    shown.ahead_ms = -10_000
    assert violation(shown, TransactionWatch(shown), 2_000, 10_000) is None
    shown.ahead_ms = TIMEOUT_MS
    assert violation(shown, TransactionWatch(shown), 1, 2 + ABORTED_WITHIN_MS) is not None


def test_a_prepared_transaction_is_completed_also_if_some_markers_are_written(shown: Any) -> None:
    watch = TransactionWatch(shown)
    shown.has(TransactionState.PREPARE_COMMIT, 0, 1)
    assert violation(shown, watch, 0, COMPLETED_WITHIN_MS) is None
    shown.has(TransactionState.PREPARE_COMMIT, 1)
    assert "left: [TopicPartition(topic='w', partition=1)]" in str(
        violation(shown, watch, COMPLETED_WITHIN_MS + 1)
    )


def test_what_is_not_calm_does_not_count(shown: Any) -> None:
    shown.has(TransactionState.PREPARE_ABORT, 0)
    watch = TransactionWatch(shown)
    late_ms = COMPLETED_WITHIN_MS
    assert violation(shown, watch, 0, late_ms) is None
    for change, back in (
        ({"wrong": "broker 2 is not up"}, {"wrong": None}),
        ({"cuts": {"1-2": None}}, {"cuts": {}}),
        ({"stalled_until_ms": 1 << 40}, {"stalled_until_ms": 0}),
        ({"leader": 2}, {"leader": 1}),
    ):
        vars(shown).update(change)
        assert violation(shown, watch, shown.now_ms + 500) is None
        vars(shown).update(back)
        assert violation(shown, watch, shown.now_ms + 500, shown.now_ms + late_ms) is None


def test_a_transaction_at_rest_is_not_stuck(shown: Any) -> None:
    shown.has(TransactionState.COMPLETE_COMMIT)
    assert violation(shown, TransactionWatch(shown), 0, 1 << 40) is None
