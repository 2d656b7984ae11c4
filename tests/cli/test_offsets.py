"""Offsets of many partitions at once, from an admin client that answers well, late, or not."""

from __future__ import annotations

import re
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from ottla.cli import offsets
from ottla.cli.client import Connection
from ottla.cli.failures import Failed
from ottla.cli.offsets import (
    EARLIEST,
    LATEST,
    end_offsets,
    first_offsets,
    offsets_at,
    shown_offsets,
)


class Admin:
    """Answers each partition with the next of what is `told` of it: an offset or an exception."""

    def __init__(self, **told: list[Any]) -> None:
        self.told = told

    def list_offsets(self, wanted: Any, **_: Any) -> dict[Any, Future[Any]]:
        futures: dict[Any, Future[Any]] = {}
        for partition in wanted:
            answer = self.told[f"t{partition.partition}"].pop(0)
            futures[partition] = future = Future()
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(SimpleNamespace(offset=answer))
        return futures


def connection(**told: list[Any]) -> Connection:
    return Connection("h:1", {}, Admin(**told), 1.0)


def refused(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "READY_PAUSE_S", 0)


BOTH = [("t", 0), ("t", 1)]


def test_each_partition_has_its_own() -> None:
    assert first_offsets(connection(t0=[3], t1=[0]), BOTH) == {("t", 0): 3, ("t", 1): 0}


def test_a_partition_without_a_leader_is_retried() -> None:
    late = connection(t0=[5], t1=[refused(KafkaError.LEADER_NOT_AVAILABLE), 7])
    assert end_offsets(late, BOTH) == {("t", 0): 5, ("t", 1): 7}


def test_a_missing_leader_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "READY_TIMEOUT_S", -1)
    gone = connection(t0=[5], t1=[refused(KafkaError.LEADER_NOT_AVAILABLE)])
    with pytest.raises(Failed, match="cannot read the offsets of t-1"):
        end_offsets(gone, BOTH)


SILENT = "no response from its leader within 1 s"


def test_a_silent_leader_has_no_offset() -> None:
    silent = connection(t0=[5], t1=[OFFSET_INVALID])
    with pytest.raises(Failed, match=rf"cannot read the offsets of t-1: {SILENT}\."):
        end_offsets(silent, BOTH)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (OFFSET_INVALID, SILENT),
        (refused(KafkaError._TIMED_OUT), SILENT),
        (refused(KafkaError._TRANSPORT), SILENT),
        (refused(KafkaError.KAFKA_STORAGE_ERROR), "Disk error when trying to access log file.*"),
    ],
)
def test_known_offsets_are_shown_despite_a_silent_leader(told: Any, why: str) -> None:
    # What is not told a second time is not asked a second time.
    known = connection(t0=[5, 9], t1=[told])
    (first, end), missing = shown_offsets(known, BOTH, EARLIEST, LATEST)
    assert (first, end) == ({("t", 0): 5}, {("t", 0): 9})
    assert list(missing) == [("t", 1)]
    assert re.fullmatch(why, missing["t", 1])


def test_a_leader_may_become_silent_between_two_requests() -> None:
    (first, end), missing = shown_offsets(
        connection(t0=[5, 9], t1=[3, OFFSET_INVALID]), BOTH, EARLIEST, LATEST
    )
    assert (first, end) == ({("t", 0): 5, ("t", 1): 3}, {("t", 0): 9})
    assert missing == {("t", 1): SILENT}


def test_a_missing_response_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "SHOWN_WITHIN_S", -0.99)
    admin = SimpleNamespace(list_offsets=lambda wanted, **_: {each: Future() for each in wanted})
    told, missing = shown_offsets(Connection("h:1", {}, admin, 1.0), BOTH, LATEST)
    assert told == [{}]
    assert list(missing) == BOTH


def test_a_time_after_every_record_starts_at_the_end() -> None:
    assert offsets_at(connection(t0=[4], t1=[-1, 9]), BOTH, 1_000) == {("t", 0): 4, ("t", 1): 9}
