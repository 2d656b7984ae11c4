"""Every coordinator of this broker, by the internal topic that it keeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime


class Coordinators:
    """Passes elections on to the coordinator of a partition's topic, if the topic has one."""

    def __init__(self, runtimes: Iterable[CoordinatorRuntime[Any]]) -> None:
        self._runtimes = {runtime.kind.topic: runtime for runtime in runtimes}

    def start(self) -> None:
        """Partitions that this broker leads already, as after a restart, count as elected."""
        for runtime in self._runtimes.values():
            for index in runtime.led_indexes():
                runtime.elected(index)

    def elected(self, topic: str, index: int) -> None:
        """This broker leads the partition now, or again in a new epoch."""
        runtime = self._runtimes.get(topic)
        if runtime is not None:
            runtime.elected(index)

    def resigned(self, topic: str, index: int) -> None:
        """Another broker leads the partition now, or it is deleted."""
        runtime = self._runtimes.get(topic)
        if runtime is not None:
            runtime.resigned(index)

    def close(self) -> None:
        """Closes every partition; requests that wait are answered with NOT_COORDINATOR."""
        for runtime in self._runtimes.values():
            runtime.close()
