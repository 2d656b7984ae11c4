"""Share coordinators in memory."""

from __future__ import annotations

import asyncio

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.share.shard import Summary
from ottla.share.stored import ShareKey

SUMMARY = Summary(1, 2, 30, 4)


class States:
    """Share coordinators; `refused` has what they say about a partition."""

    def __init__(self) -> None:
        self.begun: list[tuple[ShareKey, int, int]] = []
        self.deleted: list[ShareKey] = []
        self.refused: dict[int, ErrorCode] = {}
        self.summaries: dict[int, Summary] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def _ask(self, key: ShareKey) -> None:
        await self.gate.wait()
        if key.partition in self.refused:
            raise ApiError(self.refused[key.partition])

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        self.begun.append((key, state_epoch, start_offset))
        await self._ask(key)

    async def delete(self, key: ShareKey) -> None:
        await self._ask(key)
        self.deleted.append(key)

    async def summary(self, key: ShareKey) -> Summary:
        await self._ask(key)
        return self.summaries.get(key.partition, SUMMARY)
