"""Counts of a run become rates and percentiles."""

from __future__ import annotations

import pytest

from ottla.cli.bench.chart import latency_text, line, show_measured
from ottla.cli.rows import document
from ottla.messaging.load.meter import MAX_SAMPLES, Meter


def run_of_two_seconds() -> Meter:
    meter = Meter(100.0)
    meter.add(1000, 100_000)
    for latency_us in range(1, 101):
        meter.add_latency(latency_us * 1000)
    meter.sample(101.0)
    meter.add(500, 50_000)
    meter.add_error("timed out")
    meter.add_error("timed out")
    meter.end(102.0)
    return meter


def test_moments_and_the_whole() -> None:
    meter = run_of_two_seconds()
    first, second = meter.samples
    assert (first.seconds, first.records_per_s, first.bytes_per_s) == (1.0, 1000, 100_000)
    assert (second.seconds, second.records_per_s, second.p99_us) == (2.0, 500, None)
    measured = document(meter.measured("t"))
    latencies = measured.pop("latency_ms")
    assert measured == {
        "topic": "t",
        "records": 1500,
        "bytes": 150_000,
        "seconds": 2.0,
        "records_per_s": 750,
        "bytes_per_s": 75_000,
        "errors": [{"error": "timed out", "records": 2}],
    }
    assert latencies == {
        "p50": pytest.approx(50, rel=0.01),
        "p95": pytest.approx(95, rel=0.01),
        "p99": pytest.approx(99, rel=0.01),
        "p99.9": pytest.approx(100, rel=0.01),
        "max": 100,
    }


def test_samples_are_bounded() -> None:
    meter = Meter(0)
    for second in range(1, MAX_SAMPLES + 10):
        meter.sample(second)
    assert len(meter.samples) == MAX_SAMPLES
    assert meter.samples[-1].seconds == MAX_SAMPLES + 9
    assert meter.sample(MAX_SAMPLES + 9) is None


def test_a_run_without_records() -> None:
    meter = Meter(5)
    meter.end(5)
    measured = meter.measured("t")
    assert (measured.records_per_s, measured.latency_ms) == (0, None)


def test_a_run_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    meter = run_of_two_seconds()
    show_measured(meter.measured("t"), "Produced to t")
    lines = [each.split() for each in capsys.readouterr().out.splitlines()]
    assert lines[:4] == [
        ["Produced", "to", "t"],
        ["records", "bytes", "time", "records/s", "bytes/s"],
        ["1,500", "150.0", "kB", "2.0", "s", "750", "75.0", "kB/s"],
        [],
    ]
    assert lines[4] == ["latency", "p50", "p95", "p99", "p99.9", "max"]
    assert lines[5][-2:] == ["100.0", "ms"]
    text = line(meter.samples[0], 1000)
    assert text.startswith("1 s: 1,000 records, 1,000/s, 100.0 kB/s, p50 ")
    assert line(meter.samples[1], 1500) == "2 s: 1,500 records, 500/s, 50.0 kB/s"


def test_latencies_as_text() -> None:
    shown = [latency_text(each) for each in (None, 0.4, 9.999, 12.34, 1234.0)]
    assert shown == ["-", "0.40 ms", "10.00 ms", "12.3 ms", "1.2 s"]
