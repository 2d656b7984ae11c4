"""Adding partitions to a transaction, and verifying that they were added (KIP-890)."""

from __future__ import annotations

import pytest
from tests.transactions.values import (
    BEGAN_MS,
    EPOCH,
    ID,
    NOW_MS,
    ONE,
    OTHER,
    new_step,
    producer,
    value_in,
    written,
)

from ottla.protocol.errors import ErrorCode
from ottla.shards.step import ProducerEpoch
from ottla.transactions.partitions import add, verify
from ottla.transactions.requests import AddRequest
from ottla.transactions.state import (
    AT_REST,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionState,
)
from ottla.transactions.stored import TopicPartition

BOTH = frozenset({ONE, OTHER})


def request(
    partitions: frozenset[TopicPartition] = frozenset({ONE}),
    who: ProducerEpoch = producer(),  # noqa: B008 - a value
    version: int = 2,
) -> AddRequest:
    return AddRequest(ID, who, partitions, version)


@pytest.mark.parametrize("state", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
def test_the_first_partitions_begin_a_transaction(state: TransactionState) -> None:
    for version in (0, 2):
        step = new_step()
        assert add(value_in(state), request(version=version), step) is ErrorCode.none
        begun = written(step)
        assert (begun.state, begun.partitions) == (ONGOING, frozenset({ONE}))
        assert (begun.start_ms, begun.client_version) == (NOW_MS, version)


def test_more_partitions_join_an_open_transaction_whose_time_goes_on() -> None:
    step = new_step()
    assert add(value_in(ONGOING), request(frozenset({OTHER})), step) is ErrorCode.none
    value = written(step)
    assert (value.partitions, value.start_ms) == (BOTH, BEGAN_MS)


def test_partitions_that_are_added_already_write_nothing() -> None:
    step = new_step()
    assert add(value_in(ONGOING, partitions=BOTH), request(), step) is ErrorCode.none
    assert step.records == []


@pytest.mark.parametrize("state", TransactionState)
def test_errors_of_adding(state: TransactionState) -> None:
    step = new_step()
    value = value_in(state)
    unknown = ErrorCode.invalid_producer_id_mapping
    expected = {producer(producer_id=1): unknown, producer(EPOCH + 1): ErrorCode.producer_fenced}
    for who, error in expected.items():
        # KAFKA-18464: the producer may have the next epoch already.
        is_decided = state in (PREPARE_COMMIT, PREPARE_ABORT)
        wanted = ErrorCode.concurrent_transactions if is_decided else error
        assert add(value, request(who=who), step) is wanted
    assert add(None, request(), step) is unknown
    assert step.records == []


def test_only_added_partitions_are_verified() -> None:
    assert verify(value_in(ONGOING), producer(), BOTH) == {
        ONE: ErrorCode.none,
        OTHER: ErrorCode.transaction_abortable,
    }
    for state in AT_REST:
        errors = verify(value_in(state), producer(), BOTH)
        assert set(errors.values()) == {ErrorCode.transaction_abortable}


@pytest.mark.parametrize(
    ("state", "who", "error"),
    [
        (None, producer(), "invalid_producer_id_mapping"),
        (ONGOING, producer(producer_id=1), "invalid_producer_id_mapping"),
        (ONGOING, producer(EPOCH - 1), "producer_fenced"),
        (PREPARE_ABORT, producer(EPOCH - 1), "producer_fenced"),
        (PREPARE_COMMIT, producer(), "concurrent_transactions"),
    ],
)
def test_errors_of_verifying_are_those_of_every_partition(
    state: TransactionState | None, who: ProducerEpoch, error: str
) -> None:
    value = None if state is None else value_in(state)
    assert verify(value, who, BOTH) == dict.fromkeys(BOTH, ErrorCode[error])


def test_the_partitions_of_a_transaction_are_limited() -> None:
    step = new_step(max_partitions=1)
    wanted = request(frozenset({OTHER}))
    assert add(value_in(ONGOING), wanted, step) is ErrorCode.unknown_server_error
    assert step.records == []
    assert add(value_in(ONGOING), request(), step) is ErrorCode.none
    assert add(value_in(EMPTY), wanted, step) is ErrorCode.none
