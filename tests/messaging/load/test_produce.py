"""The load is sent in full, and each record is counted once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError

from ottla.messaging.load import produce as bench_produce
from ottla.messaging.load.meter import Meter
from ottla.messaging.load.produce import Load, produce_load, values


class Broker:
    """A producer whose queue holds 250 records; every poll acknowledges all, after 2 ms each."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.queue: list[Callable[..., None]] = []
        self.sent: list[tuple[bytes, bytes | None]] = []
        Broker.last = self

    last: Broker
    refused: KafkaError | None = None

    def produce(
        self, topic: str, value: bytes, key: bytes | None, *, on_delivery: Callable[..., None]
    ) -> None:
        assert topic == "t"
        if len(self.queue) >= 250:
            raise BufferError
        self.sent.append((value, key))
        self.queue.append(on_delivery)

    def latency(self) -> float:
        return 0.002

    def poll(self, _timeout_s: float) -> None:
        for each in self.queue:
            each(self.refused if len(self.sent) > 900 else None, self)
        self.queue.clear()

    def flush(self, _timeout_s: float) -> int:
        self.poll(0)
        return 0

    def purge(self) -> None:
        self.queue.clear()


@pytest.fixture(autouse=True)
def broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_produce, "Producer", Broker)


def load(**changes: Any) -> Load:
    given: dict[str, Any] = {
        "topic": "t",
        "value_bytes": 10,
        "keys": None,
        "records": None,
        "for_s": None,
        "rate": None,
    }
    return Load(**{**given, **changes})


def run(**changes: Any) -> tuple[Meter, bool]:
    meter = Meter(time.monotonic())
    return meter, produce_load({}, load(**changes), meter, lambda: None)


def test_as_many_records_as_asked_for() -> None:
    meter, is_interrupted = run(records=1000, keys=3)
    found = meter.measured("t")
    assert not is_interrupted
    assert (found.records, found.bytes, found.errors) == (1000, 10_000, [])
    assert (found.latency_ms or {})["p50"] == pytest.approx(2, rel=0.02)
    sent = Broker.last.sent
    assert len(sent) == 1000
    assert {key for _, key in sent} == {b"0", b"1", b"2"}
    assert all(len(value) == 10 for value, _ in sent)


def test_a_rate_limits_the_load() -> None:
    meter, _ = run(for_s=0.1, rate=100.0)
    assert meter.records <= 11


def test_refused_records_are_counted_by_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broker, "refused", KafkaError(KafkaError._MSG_TIMED_OUT))
    meter, _ = run(records=1000)
    ((reason, count),) = meter.errors.items()
    assert "timed out" in reason
    assert meter.records + count == 1000


def test_ctrl_c_ends_the_run_with_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_produce, "flush", interrupted)
    meter, is_interrupted = run(records=500)
    assert is_interrupted
    assert meter.records >= 250


def test_values_are_the_same_in_each_run() -> None:
    assert values(20) == values(20)
    assert len(set(values(20))) == len(values(20))
