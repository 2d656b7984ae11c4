"""Who coordinates a producer's transaction: this broker, another, nobody, or one that is silent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.journey.transactions import CoordinatedTransaction
from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.tracing.transaction_coordinators import (
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
    Coordinated,
    find_transactions,
)
from ottla.transactions.requests import ListFilter
from ottla.transactions.state import COMPLETE_COMMIT, ONGOING
from ottla.transactions.stored import TopicPartition, TransactionValue

HERE, ELSEWHERE = TopicPartition("t", 0), TopicPartition("t", 1)
OWN = TransactionValue(7, 3, 60_000, ONGOING, frozenset({HERE}), 2_000, 1_000)


class Transactions:
    """This broker's coordinator."""

    def __init__(self, *values: TransactionValue) -> None:
        self.values = values
        self.refusal: ErrorCode | None = None

    async def list(self, wanted: ListFilter) -> list[tuple[str, TransactionValue]]:
        if self.refusal is not None:
            raise ApiError(self.refusal)
        return [("own", each) for each in self.values if each.producer_id in wanted.producer_ids]


class Other:
    """The coordinator of broker 2: has one transaction, of producer 8."""

    def __init__(self, *, silent: bool = False, error: ErrorCode = ErrorCode.none) -> None:
        self.silent, self.error = silent, error

    async def ask(self, request: Any, timeout_ms: int) -> Any:
        if self.silent:
            raise PeerError("broker 2 did not answer")
        if request.__api_key__ == LIST_TRANSACTIONS:
            build = messages_of(LIST_TRANSACTIONS, 0)
            state = build.TransactionState(
                transactional_id="other", producer_id=8, transaction_state="Ongoing"
            )
            found = (state,) if 8 in request.producer_id_filters else ()
            return build.ListTransactionsResponse(error_code=self.error, transaction_states=found)
        build = messages_of(DESCRIBE_TRANSACTIONS, 0)
        assert request.transactional_ids == ("other",)
        described = build.TransactionState(
            error_code=ErrorCode.none,
            transactional_id="other",
            transaction_state="PrepareAbort",
            transaction_timeout=5_000,
            transaction_start_time=4_000,
            producer_id=8,
            producer_epoch=0,
            topics=(build.TopicData(topic="t", partitions=(1,)),),
        )
        return build.DescribeTransactionsResponse(transaction_states=(described,))


def broker(own: Transactions, other: Other | None = None) -> Any:
    def peer(number: int, purpose: str) -> Any:
        assert number == 2
        return other

    return SimpleNamespace(
        config=SimpleNamespace(id=1),
        image=SimpleNamespace(brokers={1: None} if other is None else {1: None, 2: None}),
        transactions=own,
        peers=SimpleNamespace(peer=peer),
    )


@pytest.mark.parametrize(
    ("value", "partition", "has_partition"),
    [
        (OWN, HERE, True),
        (OWN, ELSEWHERE, False),
        (OWN._replace(state=COMPLETE_COMMIT), HERE, False),
    ],
)
async def test_this_broker_coordinates_it(
    value: TransactionValue, partition: TopicPartition, has_partition: bool
) -> None:
    found = await find_transactions(frozenset({7}), partition, broker(Transactions(value)))
    said = CoordinatedTransaction("own", 1, value.state.value, 1_000, 60_000, has_partition)
    assert found == Coordinated({7: said}, ())


@pytest.mark.parametrize(("partition", "has_partition"), [(HERE, False), (ELSEWHERE, True)])
async def test_another_broker_coordinates_it(
    partition: TopicPartition, has_partition: bool
) -> None:
    found = await find_transactions(frozenset({8}), partition, broker(Transactions(OWN), Other()))
    said = CoordinatedTransaction("other", 2, "PrepareAbort", 4_000, 5_000, has_partition)
    assert found == Coordinated({8: said}, ())


async def test_nobody_coordinates_it() -> None:
    found = await find_transactions(frozenset({9}), HERE, broker(Transactions(OWN), Other()))
    assert found == Coordinated({}, ())


async def test_brokers_that_do_not_answer() -> None:
    own = Transactions(OWN)
    for other in (Other(silent=True), Other(error=ErrorCode.coordinator_load_in_progress)):
        found = await find_transactions(frozenset({7, 8}), HERE, broker(own, other))
        assert set(found.transactions) == {7}
        assert found.unanswered == (2,)
    own.refusal = ErrorCode.coordinator_load_in_progress
    found = await find_transactions(frozenset({7}), HERE, broker(own))
    assert found == Coordinated({}, (1,))
