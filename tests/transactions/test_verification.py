from __future__ import annotations

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.transactions.verification import (
    Asked,
    asked_for_offset_commit,
    asked_for_produce,
    client_error,
    produce_error,
)


@pytest.mark.parametrize(
    ("version", "asked"),
    [(3, Asked.VERIFIED), (10, Asked.VERIFIED), (11, Asked.VERIFIED_ABORTABLE), (12, Asked.ADDED)],
)
def test_what_a_produce_request_asks_for(version: int, asked: Asked) -> None:
    assert asked_for_produce(version) is asked


@pytest.mark.parametrize(
    ("version", "asked"),
    [(0, Asked.VERIFIED), (3, Asked.VERIFIED), (4, Asked.VERIFIED_ABORTABLE), (5, Asked.ADDED)],
)
def test_what_an_offset_commit_asks_for(version: int, asked: Asked) -> None:
    assert asked_for_offset_commit(version) is asked


def test_trap_10_a_fenced_producer_may_abort() -> None:
    """KAFKA-14278: PRODUCER_FENCED is fatal, INVALID_PRODUCER_EPOCH of Produce is not."""
    for asked in Asked:
        error = client_error(ErrorCode.producer_fenced, asked)
        assert error is ErrorCode.invalid_producer_epoch


def test_older_clients_do_not_know_transaction_abortable() -> None:
    abortable = ErrorCode.transaction_abortable
    assert client_error(abortable, Asked.VERIFIED) is ErrorCode.invalid_txn_state
    assert client_error(abortable, Asked.VERIFIED_ABORTABLE) is abortable
    assert client_error(abortable, Asked.ADDED) is abortable


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.network_exception,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    ],
)
@pytest.mark.parametrize("asked", Asked)
def test_a_producer_repeats_what_could_not_be_verified(error: ErrorCode, asked: Asked) -> None:
    assert produce_error(error, asked) is ErrorCode.not_enough_replicas


def test_only_new_producers_know_concurrent_transactions() -> None:
    concurrent = ErrorCode.concurrent_transactions
    assert produce_error(concurrent, Asked.ADDED) is concurrent
    assert produce_error(concurrent, Asked.VERIFIED) is ErrorCode.not_enough_replicas
    fenced = produce_error(ErrorCode.producer_fenced, Asked.VERIFIED)
    assert fenced is ErrorCode.invalid_producer_epoch
