"""AddOffsetsToTxn: the group's partition belongs to the transaction."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


async def add(api: Any, version: int, producer: tuple[int, int]) -> ErrorCode:
    answer = await api.ask(
        "add_offsets_to_txn",
        version,
        transactional_id="x",
        producer_id=producer[0],
        producer_epoch=producer[1],
        group_id="g",
    )
    code: ErrorCode = answer.error_code
    return code


@pytest.mark.parametrize("version", range(5))
async def test_added(api: Any, version: int) -> None:
    assert await add(api, version, await api.producer()) is ErrorCode.none
    described = await api.node.transactions.describe("x")
    index = api.node.groups.partition_for("g")
    assert described.value.partitions == {("__consumer_offsets", index)}


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, ErrorCode.invalid_producer_epoch), (2, ErrorCode.producer_fenced)],
)
async def test_a_fenced_producer(api: Any, version: int, error: ErrorCode) -> None:
    producer = await api.producer()
    await api.producer()
    assert await add(api, version, producer) is error


async def test_another_broker_coordinates_the_id(api: Any) -> None:
    producer = await api.producer()
    await api.move()
    for version in range(5):
        assert await add(api, version, producer) is ErrorCode.not_coordinator


async def test_an_unknown_id(api: Any) -> None:
    assert await add(api, 4, (5, 0)) is ErrorCode.invalid_producer_id_mapping
