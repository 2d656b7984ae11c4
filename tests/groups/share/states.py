"""Share coordinators in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

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
        self.deletions = asyncio.Event()
        """They wait for it, too."""
        self.deletions.set()
        self.lost_tries = 0
        """So many deletions are answered at their second try only."""
        self.there: dict[ShareKey, int] = {}
        """The states that there are, with their epochs."""
        self.is_wanted: Callable[[], bool] = lambda: True
        """As given last."""

    async def _ask(self, key: ShareKey) -> None:
        await self.gate.wait()
        if key.partition in self.refused:
            raise ApiError(self.refused[key.partition])

    async def initialize(
        self, key: ShareKey, state_epoch: int, start_offset: int, is_wanted: Callable[[], bool]
    ) -> None:
        self.begun.append((key, state_epoch, start_offset))
        self.is_wanted = is_wanted
        await self._ask(key)
        self.there[key] = state_epoch

    async def delete(
        self,
        key: ShareKey,
        is_wanted: Callable[[], bool],
        unanswered: Callable[[], None],
    ) -> None:
        self.is_wanted = is_wanted
        await self.deletions.wait()
        if self.lost_tries:
            self.lost_tries -= 1
            unanswered()
        await self._ask(key)
        self.deleted.append(key)
        self.there.pop(key, None)

    async def summary(self, key: ShareKey) -> Summary:
        await self._ask(key)
        return self.summaries.get(key.partition, SUMMARY)
