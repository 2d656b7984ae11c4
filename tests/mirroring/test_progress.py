"""Numbers of a run."""

from __future__ import annotations

from ottla.mirroring.progress import Progress


def test_rates_are_those_since_the_event_before() -> None:
    progress = Progress(100.0)
    progress.add(1_000, 50_000)
    progress.partitions, progress.lag = 2, 7
    first = progress.event(110.0)
    assert first.text == "1,000 records mirrored, lag 7, 100/s, 5.0 kB/s, 2 partitions"
    progress.add(10, 100)
    facts = progress.event(115.0).document
    assert facts["event"] == "progress"
    assert (facts["seconds"], facts["records"], facts["records_per_s"]) == (15.0, 1_010, 2)
    assert (facts["bytes"], facts["bytes_per_s"]) == (50_100, 20)
