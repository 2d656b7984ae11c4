"""A leader's disk that takes no more: when the broker ends, and when it stays."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.storage_failure import SAY_AGAIN_MS, StorageFailure
from ottla.protocol.errors import ApiError, ErrorCode

FULL = ApiError(ErrorCode.kafka_storage_error, "cannot write /data/t-0/0.log: disk full?")


def failure_of(*, live: tuple[int, ...]) -> tuple[StorageFailure, Any, list[str]]:
    """Of broker 1; its clock, and what it did about its end."""
    clock = SimpleNamespace(now=0, monotonic_ms=lambda: clock.now)
    node: Any = SimpleNamespace(
        config=SimpleNamespace(id=1),
        image=SimpleNamespace(brokers=dict.fromkeys(live)),
        clock=clock,
    )
    failure = StorageFailure(node)
    ended: list[str] = []
    failure.end = lambda: ended.append("end")
    return failure, clock, ended


def partition(*isr: int) -> Any:
    return SimpleNamespace(topic="t", index=0, state=SimpleNamespace(isr=isr))


def test_it_ends_once_where_another_can_lead(caplog: pytest.LogCaptureFixture) -> None:
    failure, _, ended = failure_of(live=(1, 2, 3))
    failure.append_failed(partition(1, 3), FULL)
    failure.append_failed(partition(1, 3), FULL)
    assert ended == ["end"]
    assert failure.reason == (
        "cannot write /data/t-0/0.log: disk full?: this broker ends, so that others lead"
    )
    assert [each.message for each in caplog.records] == [
        f"cannot append to t-0, which [3] can lead: {FULL}"
    ]


@pytest.mark.parametrize("isr", [(1,), (1, 3), ()])
def test_it_stays_where_nobody_else_could_lead(
    isr: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    failure, clock, ended = failure_of(live=(1, 2))
    for clock.now in (0, 1, SAY_AGAIN_MS - 1, SAY_AGAIN_MS):
        failure.append_failed(partition(*isr), FULL)
    assert (ended, failure.reason) == ([], None)
    assert [each.levelno for each in caplog.records] == [logging.ERROR] * 2
    assert "which nobody else can lead" in caplog.text


def test_other_refusals_are_none_of_its_business(caplog: pytest.LogCaptureFixture) -> None:
    failure, _, ended = failure_of(live=(1, 2))
    failure.append_failed(partition(1, 2), ApiError(ErrorCode.not_enough_replicas))
    assert (ended, failure.reason, caplog.records) == ([], None, [])
