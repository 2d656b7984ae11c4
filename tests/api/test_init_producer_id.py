from typing import Any

import pytest

from ottla.protocol.errors import ApiError, ErrorCode

KEY = 22


async def ask(node_call: Any, version: int = 4, transactional_id: str | None = None) -> Any:
    build = node_call.request(KEY, version)
    return await node_call.ask(
        build.InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout=1000,
            producer_id=-1,
            producer_epoch=-1,
        )
    )


@pytest.mark.parametrize("version", range(6))
async def test_every_version_returns_a_new_id(node_call: Any, version: int) -> None:
    answers = [await ask(node_call, version) for _ in range(3)]
    assert all(each.error_code is ErrorCode.none for each in answers)
    assert all(each.producer_epoch == 0 for each in answers)
    assert len({each.producer_id for each in answers}) == 3


async def test_a_transactional_id_without_a_coordinator(node_call: Any) -> None:
    """`__transaction_state` does not exist: the producer looks for the coordinator first."""
    answer = await ask(node_call, transactional_id="x")
    assert answer.error_code is ErrorCode.not_coordinator
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


async def test_without_a_controller_the_producer_must_retry(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody() -> int:
        raise ApiError(ErrorCode.coordinator_load_in_progress, "there is no controller")

    monkeypatch.setattr(node_call.node.producer_ids, "next", nobody)
    answer = await ask(node_call)
    assert answer.error_code is ErrorCode.coordinator_load_in_progress
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("given", [(5, -1), (-1, 5), (-1, 0), (0, -1)])
async def test_an_id_without_an_epoch_or_the_reverse_is_refused(
    node_call: Any, version: int, given: tuple[int, int]
) -> None:
    build = node_call.request(KEY, version)
    answer = await node_call.ask(
        build.InitProducerIdRequest(
            transactional_id=None,
            transaction_timeout=1000,
            producer_id=given[0],
            producer_epoch=given[1],
        )
    )
    assert (answer.error_code, answer.producer_id) == (ErrorCode.invalid_request, -1)
