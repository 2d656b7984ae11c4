"""One client that lives again and again with a share group, in a process of its own (KIP-932)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from simulation.cluster import Cluster
from simulation.connection import RETRY_S, Connections, NoAnswerError
from simulation.process import Process

REQUEST_TIMEOUT_MS: Final = 1_500


class ShareLives:
    """`topic`: what the group reads."""

    def __init__(self, cluster: Cluster, name: str, address: str, group: str, topic: str) -> None:
        self._cluster = cluster
        self._address = address
        self._group = group
        self._topic = topic
        self.connections = Connections(name, cluster.addresses)
        self._is_stopping = False
        self._has_stopped = False

    async def start(self, life: Callable[[], Awaitable[None]], *failures: type[Exception]) -> None:
        """Begin the first life; the group begins at the earliest record. After one of these
        failures the next life begins.
        """
        await self._cluster.operator.set_group_config(
            self._group, share_auto_offset_reset="earliest"
        )

        async def run() -> None:
            while not self._is_stopping:
                try:
                    await life()
                except failures:
                    self.connections.forget_coordinator(self._group)
                    await asyncio.sleep(RETRY_S)
            self._has_stopped = True

        self._cluster.loop.start_in(Process(self._address), run)

    async def stop(self) -> None:
        """Wait for the end of the last life."""
        self._is_stopping = True
        while not self._has_stopped:
            await asyncio.sleep(RETRY_S)

    @property
    def is_last(self) -> bool:
        """Whether the life that is under way is to end soon."""
        return self._is_stopping and not self._has_stopped

    async def ask(self, broker: int, partition: int, request: Any) -> Any:
        """Ask the leader of a partition. Raises NoAnswerError."""
        try:
            return await self.connections.ask(broker, request, REQUEST_TIMEOUT_MS)
        except NoAnswerError:
            self.connections.forget_leader(self._topic, partition)
            raise

    async def ask_coordinator(
        self, request: Any, unanswered: Callable[[], None] = lambda: None
    ) -> Any:
        """Ask the group's coordinator. `unanswered` is called if the request was sent, and nobody
        knows what became of it. Raises NoAnswerError.
        """
        broker = await self.connections.coordinator(self._group)
        try:
            return await self.connections.ask(broker, request, REQUEST_TIMEOUT_MS)
        except NoAnswerError:
            self.connections.forget_coordinator(self._group)
            unanswered()
            raise
