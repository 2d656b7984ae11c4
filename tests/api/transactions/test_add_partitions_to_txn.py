"""AddPartitionsToTxn: of clients, and of brokers."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

KEY = 24


async def by_brokers(
    api: Any, version: int, *transactions: tuple[str, tuple[int, int], bool, tuple[int, ...]]
) -> list[list[ErrorCode]]:
    answer = await api.ask(
        "add_partitions_to_txn",
        version,
        transactions=tuple(
            api.struct(
                "AddPartitionsToTxnTransaction",
                KEY,
                version,
                transactional_id=transactional_id,
                producer_id=producer[0],
                producer_epoch=producer[1],
                verify_only=verify_only,
                topics=(
                    api.struct(
                        "AddPartitionsToTxnTopic", KEY, version, name="t", partitions=indexes
                    ),
                ),
            )
            for transactional_id, producer, verify_only, indexes in transactions
        ),
    )
    assert answer.error_code is ErrorCode.none
    names = [transaction[0] for transaction in transactions]
    assert [each.transactional_id for each in answer.results_by_transaction] == names
    return [
        [each.partition_error_code for topic in result.topic_results
         for each in topic.results_by_partition]
        for result in answer.results_by_transaction
    ]  # fmt: skip


@pytest.mark.parametrize("version", range(4))
async def test_a_client_adds(api: Any, version: int) -> None:
    producer = await api.producer()
    assert await api.add(producer, version) == {("t", 0): ErrorCode.none}
    described = await api.node.transactions.describe("x")
    assert described.value.client_version == 0


async def test_all_are_added_or_none(api: Any) -> None:
    producer = await api.producer()
    errors = await api.add(producer, 3, ("t", 0), ("t", 7), ("__consumer_offsets", 0))
    assert errors == {
        ("t", 0): ErrorCode.operation_not_attempted,
        ("t", 7): ErrorCode.unknown_topic_or_partition,
        ("__consumer_offsets", 0): ErrorCode.topic_authorization_failed,
    }
    described = await api.node.transactions.describe("x")
    assert not described.value.partitions


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, ErrorCode.invalid_producer_epoch), (2, ErrorCode.producer_fenced)],
)
async def test_a_fenced_producer(api: Any, version: int, error: ErrorCode) -> None:
    producer = await api.producer()
    await api.producer()
    assert await api.add(producer, version) == {("t", 0): error}


async def test_another_broker_coordinates_the_id(api: Any) -> None:
    producer = await api.producer()
    await api.move()
    for version in range(4):
        assert await api.add(producer, version) == {("t", 0): ErrorCode.not_coordinator}


@pytest.mark.parametrize("version", [4, 5])
async def test_each_transaction_of_a_broker_has_its_own_error(api: Any, version: int) -> None:
    assert api.node.transactions.partition_for("x") != api.node.transactions.partition_for("y")
    producer = await api.producer()
    other = await api.init(transactional_id="y")
    await api.move()
    errors = await by_brokers(
        api,
        version,
        ("x", producer, True, (0,)),
        ("y", (other.producer_id, other.producer_epoch), False, (0,)),
        ("x", producer, False, (0,)),
    )
    moved = ErrorCode.not_coordinator
    assert errors == [[moved], [ErrorCode.none], [moved]]


@pytest.mark.parametrize("version", [4, 5])
async def test_brokers_verify_and_add(api: Any, version: int) -> None:
    producer = await api.producer()
    errors = await by_brokers(
        api,
        version,
        ("x", producer, True, (0,)),
        ("unknown", producer, True, (0, 9)),
        ("", producer, True, (0,)),
    )
    assert errors == [
        [ErrorCode.transaction_abortable],
        [ErrorCode.operation_not_attempted, ErrorCode.unknown_topic_or_partition],
        [ErrorCode.invalid_request],
    ]
    assert await by_brokers(api, version, ("x", producer, False, (0,))) == [[ErrorCode.none]]
    assert await by_brokers(api, version, ("x", producer, True, (0,))) == [[ErrorCode.none]]
    described = await api.node.transactions.describe("x")
    assert described.value.client_version == 2


@pytest.mark.parametrize("version", [3, 5])
async def test_many_partitions_are_checked_and_answered_in_slices(api: Any, version: int) -> None:
    """Each is named twice and answered once."""
    producer = await api.producer()
    await api.create("many", 2_000)
    count = 20_000
    for existing in (True, False):
        indexes = tuple(range(2_000 if existing else count)) * 2
        topic = api.struct("AddPartitionsToTxnTopic", KEY, version, name="many", partitions=indexes)
        if version < 4:
            answer, most_calls = await api.most_calls(
                "add_partitions_to_txn",
                version,
                v3_and_below_transactional_id="x",
                v3_and_below_producer_id=producer[0],
                v3_and_below_producer_epoch=producer[1],
                v3_and_below_topics=(topic,),
            )
            (result,) = answer.results_by_topic_v3_and_below
        else:
            transaction = api.struct(
                "AddPartitionsToTxnTransaction",
                KEY,
                version,
                transactional_id="x",
                producer_id=producer[0],
                producer_epoch=producer[1],
                verify_only=not existing,
                topics=(topic,),
            )
            answer, most_calls = await api.most_calls(
                "add_partitions_to_txn", version, transactions=(transaction,)
            )
            (result,) = answer.results_by_transaction[0].topic_results
        errors = [each.partition_error_code for each in result.results_by_partition]
        if existing:
            assert errors == [ErrorCode.none] * 2_000
        else:
            unknown = [ErrorCode.unknown_topic_or_partition] * (count - 2_000)
            assert errors == [ErrorCode.operation_not_attempted] * 2_000 + unknown
        assert most_calls < 40_000
