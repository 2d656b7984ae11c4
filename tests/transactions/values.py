"""Transactions in a given state, for tests of the deciders."""

from __future__ import annotations

from typing import Any, Final

from ottla.shards.step import ProducerEpoch
from ottla.transactions.settings import TransactionSettings
from ottla.transactions.state import AT_REST, TransactionState
from ottla.transactions.step import Step
from ottla.transactions.stored import TopicPartition, TransactionValue

ID: Final = "t"
PRODUCER_ID: Final = 1000
EPOCH: Final = 5
BEGAN_MS: Final = 100
NOW_MS: Final = 500
TIMEOUT_MS: Final = 1_000
ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def value_in(state: TransactionState, **changes: Any) -> TransactionValue:
    """Producer 1000/5, of a client of version 2; with a transaction it has one partition."""
    partitions = frozenset() if state in AT_REST else frozenset({ONE})
    value = TransactionValue(PRODUCER_ID, EPOCH, TIMEOUT_MS, state, partitions, BEGAN_MS)
    return value._replace(
        start_ms=BEGAN_MS, previous_producer_id=PRODUCER_ID, client_version=2
    )._replace(**changes)


def new_step(now_ms: int = NOW_MS, **settings: int) -> Step:
    return Step(now_ms, TransactionSettings(**settings))


def written(step: Step) -> TransactionValue:
    """The value of the one record that the step writes."""
    (record,) = step.records
    assert record.transactional_id == ID
    assert record.value is not None
    assert record.value.last_update_ms == step.now_ms
    return record.value


def producer(epoch: int = EPOCH, producer_id: int = PRODUCER_ID) -> ProducerEpoch:
    return ProducerEpoch(producer_id, epoch)
