"""InitProducerId with a transactional id."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize("version", range(6))
async def test_each_producer_fences_the_one_before(api: Any, version: int) -> None:
    answers = [await api.init(version) for _ in range(3)]
    assert [each.error_code for each in answers] == [ErrorCode.none] * 3
    assert [each.producer_epoch for each in answers] == [0, 1, 2]
    assert len({each.producer_id for each in answers}) == 1


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": ""}, ErrorCode.invalid_request),
        ({"transaction_timeout": 0}, ErrorCode.invalid_transaction_timeout),
        ({"transaction_timeout": 900_001}, ErrorCode.invalid_transaction_timeout),
        ({"producer_id": 5}, ErrorCode.invalid_request),
        ({"producer_epoch": 5}, ErrorCode.invalid_request),
    ],
)
async def test_refused(api: Any, fields: dict[str, Any], error: ErrorCode) -> None:
    answer = await api.init(**fields)
    assert answer.error_code is error
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.invalid_producer_epoch), (4, ErrorCode.producer_fenced)],
)
async def test_a_fenced_producer(api: Any, version: int, error: ErrorCode) -> None:
    producer_id, epoch = await api.producer()
    await api.producer()
    await api.producer()
    answer = await api.init(version, producer_id=producer_id, producer_epoch=epoch)
    assert answer.error_code is error


async def test_a_producer_goes_on_after_an_error(api: Any) -> None:
    producer_id, epoch = await api.producer()
    for _ in range(2):
        answer = await api.init(producer_id=producer_id, producer_epoch=epoch)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (
            ErrorCode.none,
            producer_id,
            epoch + 1,
        )
