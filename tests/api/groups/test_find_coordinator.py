"""FindCoordinator in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.controller.plan import Outcome
from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize("version", range(4))
async def test_one_key(api: Any, version: int) -> None:
    answer = await api.ask("find_coordinator", version, key="g", key_type=0)
    found = (answer.error_code, answer.node_id, answer.host, answer.port)
    assert found == (ErrorCode.none, 1, "there", 9093)
    assert api.image.topic("__consumer_offsets") is not None


@pytest.mark.parametrize("version", range(4, 7))
async def test_many_keys(api: Any, version: int) -> None:
    answer = await api.ask("find_coordinator", version, key_type=0, coordinator_keys=("g", "h"))
    assert [(each.key, each.port, each.error_code) for each in answer.coordinators] == [
        ("g", 9093, ErrorCode.none),
        ("h", 9093, ErrorCode.none),
    ]


@pytest.mark.parametrize(
    ("key_type", "error"),
    [
        (2, ErrorCode.invalid_request),
        (9, ErrorCode.invalid_request),
    ],
)
async def test_unknown_coordinators(api: Any, key_type: int, error: ErrorCode) -> None:
    answer = await api.ask("find_coordinator", 6, key_type=key_type, coordinator_keys=("g",))
    assert (answer.coordinators[0].error_code, answer.coordinators[0].node_id) == (error, -1)
    answer = await api.ask("find_coordinator", 3, key_type=key_type, key="g")
    assert (answer.error_code, answer.port) == (error, -1)
    assert answer.error_message


async def test_an_offsets_topic_that_cannot_be_created(api: Any) -> None:
    api.ensured = Outcome(ErrorCode.invalid_replication_factor, "three brokers are needed")
    answer = await api.ask("find_coordinator", 3, key_type=0, key="g")
    assert answer.error_code is ErrorCode.coordinator_not_available
    assert answer.error_message == "three brokers are needed"
