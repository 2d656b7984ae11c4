"""ListTransactions and its filters."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


async def listed(api: Any, version: int, **fields: Any) -> list[tuple[str, str]]:
    wanted = {"state_filters": (), "producer_id_filters": ()} | fields
    answer = await api.ask("list_transactions", version, **wanted)
    assert answer.error_code is ErrorCode.none
    return [(each.transactional_id, each.transaction_state) for each in answer.transaction_states]


@pytest.mark.parametrize("version", range(3))
async def test_states_and_producers(api: Any, version: int) -> None:
    producer = await api.producer()
    await api.add(producer)
    await api.init(transactional_id="y")
    assert sorted(await listed(api, version)) == [("x", "Ongoing"), ("y", "Empty")]
    assert await listed(api, version, state_filters=("Ongoing",)) == [("x", "Ongoing")]
    by_id = await listed(api, version, producer_id_filters=(producer[0],))
    assert by_id == [("x", "Ongoing")]


async def test_durations(api: Any) -> None:
    await api.add(await api.producer())
    assert await listed(api, 1, duration_filter=-1) == [("x", "Ongoing")]
    assert await listed(api, 1, duration_filter=3_600_000) == []


async def test_states_that_nobody_knows(api: Any) -> None:
    await api.producer()
    answer = await api.ask(
        "list_transactions", 1, state_filters=("Sleeping", "Dead"), producer_id_filters=()
    )
    assert answer.unknown_state_filters == ("Sleeping",)
    assert answer.transaction_states == ()


async def test_a_pattern_of_the_id(api: Any) -> None:
    await api.producer()
    for name in ("orders-1", "orders-2", "old-orders-1"):
        await api.init(transactional_id=name)
    matching = await listed(api, 2, transactional_id_pattern="orders-.*")
    assert sorted(name for name, _ in matching) == ["orders-1", "orders-2"]
    assert len(await listed(api, 2, transactional_id_pattern="")) == 4
    assert len(await listed(api, 2, transactional_id_pattern=None)) == 4


async def test_a_pattern_that_is_none(api: Any) -> None:
    await api.producer()
    answer = await api.ask(
        "list_transactions",
        2,
        state_filters=("Sleeping",),
        producer_id_filters=(),
        transactional_id_pattern="(",
    )
    assert answer.error_code is ErrorCode.invalid_regular_expression
    assert answer.unknown_state_filters == ()
    assert answer.transaction_states == ()


async def test_ids_that_other_brokers_coordinate_are_not_listed(api: Any) -> None:
    assert api.node.transactions.partition_for("x") != api.node.transactions.partition_for("y")
    await api.producer()
    await api.init(transactional_id="y")
    await api.move()
    assert await listed(api, 1) == [("y", "Empty")]


async def test_a_broker_that_stops_has_no_list(api: Any) -> None:
    await api.producer()
    api.node.coordinators.close()
    answer = await api.ask(
        "list_transactions", 1, state_filters=("Sleeping",), producer_id_filters=()
    )
    assert answer.error_code is ErrorCode.coordinator_not_available
    assert (answer.unknown_state_filters, answer.transaction_states) == (("Sleeping",), ())
