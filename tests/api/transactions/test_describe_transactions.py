"""DescribeTransactions: states, partitions, unknown ids."""

from __future__ import annotations

from typing import Any

from ottla.protocol.errors import ErrorCode


async def test_an_open_transaction(api: Any) -> None:
    producer = await api.producer()
    await api.add(producer)
    answer = await api.ask("describe_transactions", 0, transactional_ids=("x", "y", ""))
    found, unknown, empty = answer.transaction_states
    assert found.error_code is ErrorCode.none
    assert (found.transactional_id, found.transaction_state) == ("x", "Ongoing")
    assert (found.producer_id, found.producer_epoch) == producer
    assert found.transaction_timeout == 60_000
    assert abs(found.transaction_start_time - api.node.clock.now_ms()) < 60_000
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", (0,))]
    assert unknown.error_code is ErrorCode.transactional_id_not_found
    assert empty.error_code is ErrorCode.invalid_request


async def test_another_broker_coordinates_the_id(api: Any) -> None:
    await api.add(await api.producer())
    await api.move()
    answer = await api.ask("describe_transactions", 0, transactional_ids=("x",))
    (state,) = answer.transaction_states
    assert (state.error_code, state.transactional_id) == (ErrorCode.not_coordinator, "x")
    assert (state.transaction_state, state.producer_id, state.topics) == ("", 0, ())


async def test_an_id_that_is_repeated_is_described_once(api: Any) -> None:
    await api.add(await api.producer())
    answer = await api.ask("describe_transactions", 0, transactional_ids=("x", "y", "x"))
    assert [each.transactional_id for each in answer.transaction_states] == ["x", "y"]
