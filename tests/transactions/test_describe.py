"""What ListTransactions returns for which filter (KIP-664, KIP-994)."""

from __future__ import annotations

import pytest
from tests.transactions.values import BEGAN_MS, NOW_MS, PRODUCER_ID, value_in

from ottla.transactions.describe import matches
from ottla.transactions.requests import ListFilter
from ottla.transactions.state import EMPTY, ONGOING
from ottla.transactions.stored import NO_TIMESTAMP

OPEN_MS = NOW_MS - BEGAN_MS


@pytest.mark.parametrize(
    ("wanted", "is_listed"),
    [
        (ListFilter(), True),
        (ListFilter(producer_ids=frozenset({1, PRODUCER_ID})), True),
        (ListFilter(producer_ids=frozenset({1})), False),
        (ListFilter(states=frozenset({"Ongoing", "Unheard"})), True),
        (ListFilter(states=frozenset({"Empty"})), False),
        (ListFilter(duration_ms=OPEN_MS - 1), True),
        (ListFilter(duration_ms=OPEN_MS), False),
        (ListFilter(frozenset({PRODUCER_ID}), frozenset({"Ongoing"}), 0), True),
        (ListFilter(frozenset({PRODUCER_ID}), frozenset({"Ongoing"}), OPEN_MS), False),
    ],
)
def test_every_filter_must_match(wanted: ListFilter, is_listed: bool) -> None:
    assert matches(value_in(ONGOING), wanted, NOW_MS) is is_listed


def test_an_id_without_a_transaction_matches_any_duration() -> None:
    value = value_in(EMPTY, start_ms=NO_TIMESTAMP)
    assert matches(value, ListFilter(duration_ms=NOW_MS), NOW_MS)
