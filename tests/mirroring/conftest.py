"""Two brokers, and mirrors between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from ottla.mirroring.clusters import Side
from ottla.mirroring.events import Event
from ottla.mirroring.mirror import Mirror
from ottla.mirroring.spec import MirrorSpec
from ottla.testing import Broker

WITHIN_S = 60.0


def side(broker: Any, name: str) -> Side:
    address = getattr(broker, "bootstrap", None) or broker.address
    return Side(address, {"bootstrap.servers": address}, name)


class Run:
    """One run of a mirror to the source's end, in this process."""

    def __init__(self, source: Any, target: Any, **spec: Any) -> None:
        self.events: list[Event] = []
        self.mirror = Mirror(
            MirrorSpec(**{"refresh_every_s": 1.0, "commit_every_s": 0.1, **spec}),
            side(source, "source"),
            side(target, "target"),
            self.events.append,
        )

    def __enter__(self) -> Run:
        self.mirror.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.mirror.close()

    def to_the_end(self) -> None:
        """Mirrors all that the source has now."""
        until = time.monotonic() + WITHIN_S
        assert self.mirror.run(lambda: time.monotonic() > until, self.mirror.ends()), self.events

    def until(self, is_done: Callable[[], bool]) -> None:
        """Mirrors on until something is so."""
        until = time.monotonic() + WITHIN_S
        self.mirror.run(lambda: is_done() or time.monotonic() > until)
        assert is_done(), self.events

    def kinds(self) -> list[str]:
        return [each.kind for each in self.events]


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Broker, Broker]]:
    """Source and target."""
    with ExitStack() as ending:
        yield ending.enter_context(Broker()), ending.enter_context(Broker())
