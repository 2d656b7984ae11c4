"""py4j's connections to the JVM: one for each call that waits, and idle ones for the next calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.pipelines.spark.jvm.attributes import gateway

_kept: Final[list[Any]] = []


def keeper_of_idle() -> Callable[[], None]:
    """Return what keeps the idle connections open when a call is interrupted, for a handler.

    py4j then closes those in its list, of all threads, among them those of a batch that runs. Their
    threads continue without the list.
    """
    idle = gateway()._gateway_client.deque

    def keep() -> None:
        _kept.extend(idle)
        idle.clear()

    return keep
