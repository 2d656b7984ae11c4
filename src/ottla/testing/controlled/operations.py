"""What a test may ask of the broker beside Kafka's protocol, by name. All on the broker's loop."""

from __future__ import annotations

import asyncio
from typing import Any

from ottla.node.node import Node
from ottla.replica.partition import Partition
from ottla.replication.leader import Leader
from ottla.testing.controlled.fault_script import FaultScript
from ottla.testing.controlled.virtual_time import AdvancingLoop
from ottla.testing.fault_rule import FaultRule


class RefusedError(Exception):
    """The operation is not possible; one line says why."""


class Operations:
    """Each public method is one operation: takes and returns what JSON can hold."""

    def __init__(self, node: Node, script: FaultScript) -> None:
        self._node = node
        self._script = script
        self._advancing = asyncio.Lock()

    async def now_ms(self) -> int:
        """The broker's time, in ms since 1970."""
        return self._node.clock.now_ms()

    async def advance(self, by_ms: int) -> int:
        """Let this much time pass at once; returns the broker's time afterwards."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, AdvancingLoop)
        if by_ms < 0:
            raise RefusedError(f"time does not go back: {by_ms} ms")
        async with self._advancing:
            await loop.advance(by_ms)
        return self._node.clock.now_ms()

    async def unsettled(self) -> list[str]:
        """The partitions led here whose ISR is about to change: a change is under way, or a replica
        has lagged for so long that it is due.
        """
        now_ms = self._node.clock.monotonic_ms()
        return [
            f"{each.topic}-{each.index}"
            for each in self._node.partitions
            if each.leads_others and not _is_steady(each.leader, each.log.end_offset, now_ms)
        ]

    async def roll(self, topic: str) -> None:
        """Close the active segment of each partition here, and begin a new one."""
        for partition in self._partitions(topic):
            if partition.log.is_on_disk:
                partition.log.roll(self._node.clock.now_ms())

    async def retain(self) -> None:
        """Remove the segments that retention no longer keeps, of all topics."""
        await self._node.log_maintenance.retain()

    async def compact(self, topic: str) -> None:
        """Roll the topic's partitions here, and compact everything before."""
        partitions = self._partitions(topic)
        for partition in partitions:
            if not partition.log.config.cleanup_compact:
                raise RefusedError(
                    f"topic {topic} is not compacted: create it with cleanup.policy=compact"
                )
        await self.roll(topic)
        for partition in partitions:
            await self._node.log_maintenance.compact(partition)

    def _partitions(self, topic: str) -> list[Partition]:
        found = self._node.partitions.of_topic(topic)
        if not found and self._node.image.topic(topic) is None:
            raise RefusedError(f"there is no topic {topic}")
        return found

    async def add_fault(self, rule: dict[str, Any]) -> int:
        """Returns the fault's id."""
        try:
            return self._script.add(FaultRule.from_json(rule))
        except ValueError as error:
            raise RefusedError(str(error)) from None

    async def remove_fault(self, rule_id: int) -> None:
        """Stop applying it. What it did stays in the list."""
        self._script.remove(rule_id)

    async def received(self, rule_id: int | None = None, after: int = 0) -> list[list[Any]]:
        """The requests of clients after the one with this number, or those that met a fault; the
        fields of `Received`.
        """
        return [list(each) for each in self._script.received(rule_id) if each.number > after]

    async def count_received(self) -> int:
        """The number of the last request."""
        return self._script.count


def _is_steady(leader: Leader, end_offset: int, now_ms: int) -> bool:
    return leader.in_flight is None and all(
        follower.is_caught_up(end_offset, now_ms, leader.lag_max_ms)
        for broker_id, follower in leader.followers.items()
        if broker_id in leader.state.isr
    )
