"""A transaction that is open for longer than the target lets it be."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import KafkaError
from tests.mirroring.conftest import Run
from tests.mirroring.test_mirror import Brokers, name_of, values_of

from ottla.mirroring import events, target_producer
from ottla.mirroring.target_producer import TakenOverError
from ottla.mirroring.transaction_age import TransactionAge, may_have_timed_out
from ottla.testing import Broker

TIMEOUT_MS = 1_000


@pytest.fixture(scope="module")
def hasty() -> Iterator[Brokers]:
    """The target looks for such transactions all the time."""
    often = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 100}
    with ExitStack() as ending:
        yield ending.enter_context(Broker()), ending.enter_context(Broker(often))


def test_which_errors_may_mean_a_timeout() -> None:
    for code in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED):
        assert may_have_timed_out(code, 30.0, 30.0)
        assert not may_have_timed_out(code, 29.9, 30.0)
    assert not may_have_timed_out(KafkaError.FENCED_INSTANCE_ID, 90.0, 30.0)
    assert not may_have_timed_out(KafkaError._TRANSPORT, 90.0, 30.0)


@pytest.mark.parametrize("standing", ["monotonic", "time"])
def test_a_clock_that_stands_still_does_not_count(
    monkeypatch: pytest.MonkeyPatch, standing: str
) -> None:
    now_s = {"monotonic": 100.0, "time": 5_000.0}
    for name in now_s:
        monkeypatch.setattr(time, name, lambda name=name: now_s[name])
    age = TransactionAge()
    for name in now_s.keys() - {standing}:
        now_s[name] += 40.0
    assert age.seconds() == 40.0


def stopped_once(run: Run, seconds: float) -> None:
    """The first transaction stands still before it is committed, as in a stopped process."""
    writer: Any = run.mirror._writer
    commit = writer.commit
    stops = [seconds]

    def committed(positions: Any, names: Any, starts: Any, check: Callable[[], None]) -> None:
        def checked() -> None:
            check()
            if stops and not starts:
                time.sleep(stops.pop())

        commit(positions, names, starts, checked)

    writer.commit = committed


@pytest.mark.parametrize("within_s", [0.5, 25.0], ids=["given up", "not noticed"])
def test_a_mirror_that_was_stopped_goes_on(
    hasty: Brokers, monkeypatch: pytest.MonkeyPatch, within_s: float
) -> None:
    """No other process has its name."""
    monkeypatch.setattr(target_producer, "TRANSACTION_TIMEOUT_MS", TIMEOUT_MS)
    monkeypatch.setattr(target_producer, "DELIVERED_WITHIN_S", within_s)
    monkeypatch.setattr(target_producer, "MEMBER_LOOK_S", 0.2)
    source, target = hasty
    name = name_of("stopped")
    source.create_topic(name).produce("a", "b", "c")
    with Run(source, target, topics=(name,), name=name) as run:
        stopped_once(run, 2.5)
        run.to_the_end()
    assert values_of(target, name) == {0: [b"a", b"b", b"c"]}
    assert [each.kind for each in run.events if "aborted" in each.text] == [events.WAITING]


def test_another_process_is_told_from_a_timeout(hasty: Brokers) -> None:
    """Though the transaction is too old: the group's member is refused, too."""
    source, target = hasty
    name = name_of("other")
    source.create_topic(name).produce("a", "b", "c")
    spec: dict[str, Any] = {"topics": (name,), "name": name}
    with Run(source, target, **spec) as run:
        run.to_the_end()
        with Run(source, target, **spec) as other:
            source.topic(name).produce("d")
            other.to_the_end()
            producer: Any = run.mirror._producer
            producer.is_open = producer._is_ended = True
            with pytest.raises(TakenOverError):
                producer.abort()
            source.topic(name).produce("e")
            other.to_the_end()
    assert values_of(target, name) == {0: [b"a", b"b", b"c", b"d", b"e"]}
