"""A full disk: when the broker stops, and when it keeps running."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.log.errors import SyncError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.repeated_failure import LOG_AGAIN_MS
from ottla.storage.log_store import gone_error
from ottla.storage.storage_failure import TURN_MS, StorageFailure

FULL = ApiError(ErrorCode.kafka_storage_error, "cannot write /data/t-0/0.log: disk full?")


def failure_of(*, live: tuple[int, ...], own: int = 1) -> tuple[StorageFailure, Any, list[str]]:
    """The StorageFailure of broker `own`, its clock, and its calls of `end`."""
    clock: Any = SimpleNamespace(now=0, monotonic_ms=lambda: clock.now)
    image: Any = SimpleNamespace(brokers=dict.fromkeys(live))
    failure = StorageFailure(own, image, clock)
    ended: list[str] = []
    failure.end = lambda: ended.append("end")
    return failure, clock, ended


def partition(*isr: int) -> Any:
    return SimpleNamespace(topic="t", index=0, state=SimpleNamespace(isr=isr))


def test_it_stops_once_if_another_broker_can_lead(caplog: pytest.LogCaptureFixture) -> None:
    failure, _, ended = failure_of(live=(1, 2, 3))
    failure.write_failed(partition(1, 3), FULL)
    failure.write_failed(partition(1, 3), FULL)
    assert ended == ["end"]
    assert failure.reason == (
        "cannot write /data/t-0/0.log: disk full?: this broker stops so that others can take over"
    )
    assert [each.message for each in caplog.records] == [
        f"cannot write t-0, which [3] can lead: {FULL}"
    ]


@pytest.mark.parametrize("isr", [(1,), (1, 3), ()])
def test_it_keeps_running_if_no_other_broker_can_lead(
    isr: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    failure, clock, ended = failure_of(live=(1, 2))
    for clock.now in (0, 1, LOG_AGAIN_MS - 1, LOG_AGAIN_MS):
        failure.write_failed(partition(*isr), FULL)
    assert (ended, failure.reason) == ([], None)
    assert [each.levelno for each in caplog.records] == [logging.ERROR] * 2
    assert "which no other broker can lead" in caplog.text


def test_other_errors_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    failure, _, ended = failure_of(live=(1, 2))
    failure.write_failed(partition(1, 2), ApiError(ErrorCode.not_enough_replicas))
    assert (ended, failure.reason, caplog.records) == ([], None, [])


def test_a_follower_that_cannot_write_stops() -> None:
    """In sync or not: the leader continues without this replica."""
    for isr in [(2, 1), (2,)]:
        failure, _, ended = failure_of(live=(1, 2))
        failure.write_failed(partition(*isr), FULL)
        assert ended == ["end"]


@pytest.mark.parametrize(("left", "ends"), [((1, 2, 3), True), ((2, 3), True), ((3,), False)])
async def test_brokers_with_higher_ids_check_later_who_is_left(
    left: tuple[int, ...],
    ends: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Three brokers share one full disk: one keeps running, so that clients can read from it."""
    turns = later(monkeypatch)
    failure, _, ended = failure_of(live=(1, 2, 3), own=3)
    failure.write_failed(partition(1, 2, 3), FULL)
    failure.write_failed(partition(1, 2, 3), FULL)
    assert (ended, failure.reason, len(caplog.records)) == ([], None, 1)
    ((delay_s, turn),) = turns
    assert delay_s == 2 * TURN_MS / 1000
    assert failure.will_stop
    state: Any = SimpleNamespace(isr=left)
    image: Any = failure._image
    image.partition = lambda topic, index: state
    turn()
    assert bool(ended) == bool(failure.reason) == failure.will_stop == ends
    # The one that stayed logs the next failure, or stops then if others are back.
    failure.write_failed(partition(3), FULL)
    assert caplog.text.count("which no other broker can lead") == (not ends)


async def test_a_broker_stopped_before_its_turn_has_not_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = later(monkeypatch)
    failure, _, ended = failure_of(live=(1, 2), own=2)
    failure.write_failed(partition(1, 2), FULL)
    assert len(turns) == 1
    failure.close()
    assert (turns, ended, failure.reason) == ([], [], None)
    failure.write_failed(partition(1, 2), FULL)
    assert (turns, ended, failure.reason) == ([], [], None)


def later(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, Callable[[], None]]]:
    """The calls scheduled on the loop, and their delays in seconds."""
    turns: list[tuple[float, Callable[[], None]]] = []

    def call_later(delay_s: float, call: Callable[..., None], *arguments: Any) -> Any:
        turns.append((delay_s, lambda: call(*arguments)))
        return SimpleNamespace(cancel=turns.clear)

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    return turns


def test_a_partition_that_failed_to_open_counts_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failure, _, ended = failure_of(live=(1, 2))
    failure.failed("t", 7, None, FULL)
    assert ended == []
    state: Any = SimpleNamespace(isr=(1, 2))
    failure.failed("t", 7, state, FULL)
    assert ended == ["end"]
    assert f"cannot write t-7, which [2] can lead: {FULL}" in caplog.text


LOST = SyncError("cannot sync /data/t-0: Input/output error")


@pytest.mark.parametrize("isr", [(1,), (1, 2), (2,)])
def test_after_a_failed_sync_it_always_stops(
    isr: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """Also alone: what it would acknowledge may not be on the disk."""
    failure, _, ended = failure_of(live=(1, 2))
    noted: list[str] = []
    failure.on_lost_sync = lambda: noted.append("noted")
    for _ in range(2):
        failure.write_failed(partition(*isr), LOST)
        failure.check_sync(LOST)
    assert (ended, noted, failure.has_lost_sync) == (["end"], ["noted"], True)
    assert failure.reason == (
        f"{LOST}: this broker stops, because nobody knows what is on the disk"
    )
    assert [each.message for each in caplog.records] == [
        f"{LOST}: nobody knows what is on the disk"
    ]


async def test_a_failed_sync_does_not_wait_for_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = later(monkeypatch)
    failure, _, ended = failure_of(live=(1, 2), own=2)
    failure.write_failed(partition(1, 2), FULL)
    assert (len(turns), ended) == (1, [])
    failure.write_failed(partition(1, 2), LOST)
    assert (turns, ended) == ([], ["end"])


def test_a_sync_that_fails_during_the_stop_makes_it_unclean() -> None:
    failure, _, ended = failure_of(live=(1, 2))
    failure.close()
    failure.check_sync(FULL)
    assert (failure.reason, failure.has_lost_sync) == (None, False)
    failure.check_sync(LOST)
    assert (ended, failure.has_lost_sync) == ([], True)
    assert failure.reason is not None


def test_a_failed_checkpoint_is_a_failed_write_to_every_partition() -> None:
    failure, _, ended = failure_of(live=(1, 2))
    failure.checkpoint_failed([partition(1), partition(1, 3)], FULL)
    assert ended == []
    failure.checkpoint_failed([partition(1), partition(1, 2)], FULL)
    assert ended == ["end"]


def test_it_stops_if_the_folder_is_gone_even_if_no_other_broker_can_lead(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failure, _, ended = failure_of(live=(1,))
    for _ in range(2):
        failure.folder_is_gone(gone_error("/data"))
    assert ended == ["end"]
    assert failure.reason == (
        "/data was deleted while the broker was using it:"
        " this broker stops, because nothing it writes would be kept"
    )
    assert caplog.messages == [failure.reason]
