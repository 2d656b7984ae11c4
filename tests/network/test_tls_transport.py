"""When the reading of a connection with TLS stops and continues."""

from __future__ import annotations

import asyncio

from ottla.network.tls_transport import DrainedReading


class Inner:
    def __init__(self) -> None:
        self.events: list[str] = []

    def pause_reading(self) -> None:
        self.events.append("paused")

    def resume_reading(self) -> None:
        self.events.append("resumed")


async def test_it_stops_in_the_next_turn() -> None:
    inner = Inner()
    reading = DrainedReading(inner)
    reading.pause_reading()
    reading.pause_reading()
    assert inner.events == []
    await asyncio.sleep(0)
    assert inner.events == ["paused"]
    reading.resume_reading()
    assert inner.events == ["paused", "resumed"]


async def test_it_does_not_stop_if_it_continues_in_the_same_turn() -> None:
    inner = Inner()
    reading = DrainedReading(inner)
    reading.pause_reading()
    reading.resume_reading()
    await asyncio.sleep(0)
    assert inner.events == []
    reading.pause_reading()
    reading.resume_reading()
    reading.pause_reading()
    await asyncio.sleep(0)
    assert inner.events == ["paused"]
