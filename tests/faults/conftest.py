"""Histories without anomalies, for tests that plant one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from faults.history import (
    Acknowledged,
    Assigned,
    Committed,
    Event,
    FinalCommitted,
    FinalRead,
    Polled,
    Sent,
    value_of,
)


def clean(lengths: list[int], batch: int = 3, producers: int = 2) -> list[Event]:
    """Partition p gets `lengths[p]` records. One consumer polls `batch` records at a time and
    commits after each poll."""
    events: list[Event] = [Assigned(0, 0, tuple(range(len(lengths))))]
    sequences = [0] * producers
    at_ms = 10
    for partition, length in enumerate(lengths):
        records = []
        for offset in range(length):
            producer = offset % producers
            value = value_of(producer, sequences[producer])
            sequences[producer] += 1
            records.append((offset, value))
            events.append(Sent(at_ms, value, partition))
            events.append(Acknowledged(at_ms + 1, value, partition, offset))
            at_ms += 10
        for start in range(0, length, batch):
            run = tuple(records[start : start + batch])
            events.append(Polled(at_ms, 0, partition, run))
            ends = ((partition, run[-1][0] + 1),)
            events.append(Committed(at_ms + 2, at_ms + 1, 0, ends, None))
            at_ms += 10
        events.append(FinalRead(at_ms, partition, 0, length, tuple(records)))
    events.append(FinalCommitted(at_ms, tuple(enumerate(lengths))))
    return events


@pytest.fixture(scope="session")
def clean_history() -> Callable[..., list[Event]]:
    return clean
