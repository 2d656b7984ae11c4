"""Group shards over a log in memory, whose large groups decide elsewhere, as in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.group_coordinator import group_kind
from ottla.groups.consumer.topics import Topics
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard


class LongDecisions:
    """`before` is called before each decision in the thread; `long` counts them."""

    def __init__(self, log: Any, clock: Any, topics: Topics) -> None:
        kind = group_kind(GroupSettings(), topics=lambda: topics)

        class Led:
            def open(self, index: int) -> Any:
                return log

            def indexes(self) -> range:
                return range(1)

        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(kind, Led(), clock)
        self.log = log
        self.long = 0
        self.running = 0
        self.before: Callable[[], Any] | None = None

    async def run_long(self, work: Callable[[], Any]) -> Any:
        self.long += 1
        self.running += 1
        assert self.running == 1, "one after the other"
        if self.before is not None:
            before, self.before = self.before, None
            await before()
        await asyncio.sleep(0)
        try:
            return work()
        finally:
            self.running -= 1
