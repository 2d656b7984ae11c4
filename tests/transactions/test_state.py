"""The transitions are those of Kafka's TransactionState."""

from __future__ import annotations

import pytest

from ottla.transactions.state import (
    AT_REST,
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
    PREPARED,
    PREVIOUS_STATES,
    TransactionState,
)
from ottla.transactions.stored import TransactionValue


def test_every_state_can_be_reached() -> None:
    assert set(PREVIOUS_STATES) == set(TransactionState)
    assert all(PREVIOUS_STATES.values())


def test_prepared_states_are_left_by_completion_only() -> None:
    for state, previous in PREVIOUS_STATES.items():
        if previous & PREPARED:
            assert previous <= PREPARED
            assert state in AT_REST


def test_forbidden_transition() -> None:
    value = TransactionValue(1, 0, 1, EMPTY, frozenset(), 0)
    with pytest.raises(AssertionError, match="EMPTY"):
        value.moved(PREPARE_COMMIT, 1)
    assert value.moved(ONGOING, 1).previous_producer_id == 1
