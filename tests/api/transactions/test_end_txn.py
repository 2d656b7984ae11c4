"""EndTxn in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize("version", range(5))
async def test_below_5_the_producer_keeps_its_epoch(
    api: Any, version: int, eventually: Any
) -> None:
    producer = await api.producer()
    await api.add(producer)
    answer = await api.end(producer, version)
    assert answer.error_code is ErrorCode.none
    described = (await api.node.transactions.describe("x")).value
    assert (described.producer, described.client_version) == (producer, 0)
    assert described.state.value in ("PrepareCommit", "CompleteCommit")


async def test_from_5_on_the_answer_has_the_next_epoch(api: Any) -> None:
    producer_id, epoch = await api.producer()
    await api.add((producer_id, epoch))
    answer = await api.end((producer_id, epoch), committed=False)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (
        ErrorCode.none,
        producer_id,
        epoch + 1,
    )


@pytest.mark.parametrize("version", [4, 5])
async def test_nothing_to_commit(api: Any, version: int) -> None:
    answer = await api.end(await api.producer(), version)
    assert answer.error_code is ErrorCode.invalid_txn_state


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, ErrorCode.invalid_producer_epoch), (2, ErrorCode.producer_fenced)],
)
async def test_a_fenced_producer(api: Any, version: int, error: ErrorCode) -> None:
    producer = await api.producer()
    await api.producer()
    assert (await api.end(producer, version)).error_code is error


async def test_another_broker_coordinates_the_id(api: Any) -> None:
    producer = await api.producer()
    await api.add(producer)
    await api.move()
    for version in range(6):
        answer = await api.end(producer, version)
        assert answer.error_code is ErrorCode.not_coordinator
        assert getattr(answer, "producer_id", -1) == getattr(answer, "producer_epoch", -1) == -1


async def test_an_unknown_id(api: Any) -> None:
    answer = await api.end((5, 0))
    assert answer.error_code is ErrorCode.invalid_producer_id_mapping
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
