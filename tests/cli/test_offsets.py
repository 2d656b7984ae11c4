"""Offsets of many partitions at once, from an admin client that answers well, late, or not."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from ottla.cli import offsets
from ottla.cli.client import Connection
from ottla.cli.failures import Failed
from ottla.cli.offsets import end_offsets, first_offsets, offsets_at


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


def test_a_partition_without_a_leader_yet_is_asked_again() -> None:
    late = connection(t0=[5], t1=[refused(KafkaError.LEADER_NOT_AVAILABLE), 7])
    assert end_offsets(late, BOTH) == {("t", 0): 5, ("t", 1): 7}


def test_a_leader_that_stays_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "READY_TIMEOUT_S", -1)
    gone = connection(t0=[5], t1=[refused(KafkaError.LEADER_NOT_AVAILABLE)])
    with pytest.raises(Failed, match="cannot read the offsets of t-1"):
        end_offsets(gone, BOTH)


def test_a_leader_that_says_nothing_has_no_offset() -> None:
    silent = connection(t0=[5], t1=[OFFSET_INVALID])
    with pytest.raises(Failed, match=r"cannot read the offsets of t-1: no answer within 1 s\."):
        end_offsets(silent, BOTH)


def test_what_is_younger_than_every_record_begins_at_the_end() -> None:
    assert offsets_at(connection(t0=[4], t1=[-1, 9]), BOTH, 1_000) == {("t", 0): 4, ("t", 1): 9}
