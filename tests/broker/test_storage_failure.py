"""A disk that takes no more: when the broker ends, and when it stays."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.storage_failure import SAY_AGAIN_MS, TURN_MS, StorageFailure
from ottla.protocol.errors import ApiError, ErrorCode

FULL = ApiError(ErrorCode.kafka_storage_error, "cannot write /data/t-0/0.log: disk full?")


def failure_of(*, live: tuple[int, ...], own: int = 1) -> tuple[StorageFailure, Any, list[str]]:
    """Of broker `own`; its clock, and what it did about its end."""
    clock = SimpleNamespace(now=0, monotonic_ms=lambda: clock.now)
    node: Any = SimpleNamespace(
        config=SimpleNamespace(id=own),
        image=SimpleNamespace(brokers=dict.fromkeys(live)),
        clock=clock,
        closing=False,
    )
    failure = StorageFailure(node)
    ended: list[str] = []
    failure.end = lambda: ended.append("end")
    return failure, clock, ended


def partition(*isr: int) -> Any:
    return SimpleNamespace(topic="t", index=0, state=SimpleNamespace(isr=isr))


def test_it_ends_once_where_another_can_lead(caplog: pytest.LogCaptureFixture) -> None:
    failure, _, ended = failure_of(live=(1, 2, 3))
    failure.write_failed(partition(1, 3), FULL)
    failure.write_failed(partition(1, 3), FULL)
    assert ended == ["end"]
    assert failure.reason == (
        "cannot write /data/t-0/0.log: disk full?: this broker ends, so that others go on"
    )
    assert [each.message for each in caplog.records] == [
        f"cannot write t-0, which [3] can lead: {FULL}"
    ]


@pytest.mark.parametrize("isr", [(1,), (1, 3), ()])
def test_it_stays_where_nobody_else_could_lead(
    isr: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    failure, clock, ended = failure_of(live=(1, 2))
    for clock.now in (0, 1, SAY_AGAIN_MS - 1, SAY_AGAIN_MS):
        failure.write_failed(partition(*isr), FULL)
    assert (ended, failure.reason) == ([], None)
    assert [each.levelno for each in caplog.records] == [logging.ERROR] * 2
    assert "which nobody else can lead" in caplog.text


def test_other_refusals_are_none_of_its_business(caplog: pytest.LogCaptureFixture) -> None:
    failure, _, ended = failure_of(live=(1, 2))
    failure.write_failed(partition(1, 2), ApiError(ErrorCode.not_enough_replicas))
    assert (ended, failure.reason, caplog.records) == ([], None, [])


def test_a_follower_leaves_its_copy_to_the_others() -> None:
    """In sync itself or not: the leader goes on, and nobody waits for this copy any more."""
    for isr in [(2, 1), (2,)]:
        failure, _, ended = failure_of(live=(1, 2))
        failure.write_failed(partition(*isr), FULL)
        assert ended == ["end"]


@pytest.mark.parametrize(("left", "ends"), [((1, 2, 3), True), ((2, 3), True), ((3,), False)])
async def test_who_has_a_higher_number_looks_later_who_is_left(
    left: tuple[int, ...],
    ends: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Three brokers on one disk, that is full for all of them: one stays, to be read from."""
    turns = later(monkeypatch)
    failure, _, ended = failure_of(live=(1, 2, 3), own=3)
    failure.write_failed(partition(1, 2, 3), FULL)
    failure.write_failed(partition(1, 2, 3), FULL)
    assert (ended, failure.reason, len(caplog.records)) == ([], None, 1)
    ((delay_s, turn),) = turns
    assert delay_s == 2 * TURN_MS / 1000
    state = SimpleNamespace(isr=left)
    failure._node.image.partition = lambda topic, index: state
    turn()
    assert bool(ended) == bool(failure.reason) == ends
    # Who stayed says so at the next failure, or leaves with it if others are back.
    failure.write_failed(partition(3), FULL)
    assert caplog.text.count("which nobody else can lead") == (not ends)


async def test_who_is_stopped_before_its_turn_has_not_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = later(monkeypatch)
    failure, _, ended = failure_of(live=(1, 2), own=2)
    failure.write_failed(partition(1, 2), FULL)
    failure._node.closing = True
    turns[0][1]()
    assert (ended, failure.reason) == ([], None)


def later(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, Callable[[], None]]]:
    """What the loop is asked to call, and after how many seconds."""
    turns: list[tuple[float, Callable[[], None]]] = []

    def call_later(delay_s: float, call: Callable[..., None], *arguments: Any) -> None:
        turns.append((delay_s, lambda: call(*arguments)))

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    return turns


def test_a_partition_that_could_not_be_opened_counts_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failure, _, ended = failure_of(live=(1, 2))
    failure.failed("t", 7, None, FULL)
    assert ended == []
    state: Any = SimpleNamespace(isr=(1, 2))
    failure.failed("t", 7, state, FULL)
    assert ended == ["end"]
    assert f"cannot write t-7, which [2] can lead: {FULL}" in caplog.text
