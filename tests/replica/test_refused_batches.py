"""Which refusal explains a batch that is out of order."""

from __future__ import annotations

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.records.header import LARGEST_SEQUENCE
from ottla.replica.refused_batches import IN_FLIGHT_MS, MAX_PRODUCERS, RefusedBatches

REFUSED = ErrorCode.not_leader_or_follower


@pytest.fixture
def refused() -> RefusedBatches:
    """Producer 3 was refused sequence 7 of epoch 2, at 1000 ms."""
    made = RefusedBatches()
    made.add(3, 2, 7, REFUSED, 1_000)
    return made


@pytest.mark.parametrize("sequence", [8, 12])
def test_a_later_batch_has_the_error_of_the_refused_one(
    refused: RefusedBatches, sequence: int
) -> None:
    assert refused.cause(3, 2, sequence, 1_001) is REFUSED


@pytest.mark.parametrize(
    ("producer_id", "producer_epoch", "sequence"),
    [(4, 2, 8), (3, 3, 8), (3, 1, 8), (3, 2, 7), (3, 2, 6)],
)
def test_others_are_not_explained(
    refused: RefusedBatches, producer_id: int, producer_epoch: int, sequence: int
) -> None:
    assert refused.cause(producer_id, producer_epoch, sequence, 1_001) is None


def test_it_ends_once_nothing_can_be_in_flight(refused: RefusedBatches) -> None:
    assert refused.cause(3, 2, 8, 999 + IN_FLIGHT_MS) is REFUSED
    assert refused.cause(3, 2, 8, 1_000 + IN_FLIGHT_MS) is None


def test_the_sequence_begins_again_at_zero() -> None:
    refused = RefusedBatches()
    refused.add(3, 2, LARGEST_SEQUENCE, ErrorCode.not_enough_replicas, 1)
    assert refused.cause(3, 2, 0, 1) is ErrorCode.not_enough_replicas
    assert refused.cause(3, 2, LARGEST_SEQUENCE - 1, 1) is None


def test_the_latest_refusal_counts(refused: RefusedBatches) -> None:
    refused.add(3, 2, 9, ErrorCode.not_enough_replicas, 2_000)
    assert refused.cause(3, 2, 8, 2_001) is None
    assert refused.cause(3, 2, 10, 2_001) is ErrorCode.not_enough_replicas


def test_an_unknown_producers_first_batch_is_the_lowest_that_was_refused(
    refused: RefusedBatches,
) -> None:
    refused.add(3, 2, 9, ErrorCode.not_enough_replicas, 2_000)
    for sequence, code in ((6, None), (7, None), (8, REFUSED), (9, REFUSED), (12, REFUSED)):
        assert refused.comes_first(3, 2, sequence, 2_001) is code, sequence
    assert refused.comes_first(3, 1, 9, 2_001) is None
    assert refused.comes_first(4, 2, 9, 2_001) is None
    assert refused.comes_first(3, 2, 9, 999 + IN_FLIGHT_MS) is REFUSED
    assert refused.comes_first(3, 2, 9, 1_000 + IN_FLIGHT_MS) is None, "it is not sent again"


def test_a_lower_batch_takes_the_place_of_the_lowest(refused: RefusedBatches) -> None:
    refused.add(3, 2, 5, ErrorCode.not_enough_replicas, 2_000)
    assert refused.comes_first(3, 2, 7, 2_001) is ErrorCode.not_enough_replicas
    refused.add(3, 3, 0, REFUSED, 2_002)
    assert refused.comes_first(3, 2, 7, 2_003) is None
    assert refused.comes_first(3, 3, 1, 2_003) is REFUSED


def test_the_number_of_producers_is_limited(refused: RefusedBatches) -> None:
    for producer_id in range(100, 100 + MAX_PRODUCERS):
        refused.add(producer_id, 0, 0, REFUSED, 1_001)
    assert refused.cause(3, 2, 8, 1_002) is None, "the oldest makes room"
    assert refused.cause(100, 0, 1, 1_002) is REFUSED
