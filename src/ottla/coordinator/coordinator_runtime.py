"""The coordinator of one internal topic: the partitions of it that this broker leads.

A partition is loaded when it is first asked for, or when this broker is elected, as its kind wants
it. Until it is loaded clients get COORDINATOR_LOAD_IN_PROGRESS, and ask again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from ottla.coordinator.coordinator_log import CoordinatorLog, Verification
from ottla.coordinator.coordinator_partition import CoordinatorPartition
from ottla.coordinator.shard_kind import ShardKind, ShardT
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.clock import Clock
from ottla.runtime.repeated_failure import RepeatedFailure
from ottla.shards.step import ProducerEpoch, Step

logger = logging.getLogger("ottla.coordinator")

LOAD_WAIT_S: Final = 0.1
"""Most partitions are loaded before a client would ask again."""

T = TypeVar("T")


class LedPartitions(Protocol):
    """The partitions of a coordinator's topic that this broker leads."""

    def open(self, index: int) -> CoordinatorLog:
        """The log of one; raises ApiError NOT_COORDINATOR if this broker does not lead it."""

    def indexes(self) -> Iterable[int]:
        """Those that it leads now."""


class CoordinatorRuntime(Generic[ShardT]):
    """Runs every shard of one kind on this broker. For the event loop's thread alone."""

    def __init__(self, kind: ShardKind[ShardT], led: LedPartitions, clock: Clock) -> None:
        self.kind = kind
        self._led = led
        self._clock = clock
        self._refusals = RepeatedFailure(logger, logging.WARNING, clock)
        """Appends that were refused, of all partitions: a full disk refuses them all."""
        self._partitions: dict[int, CoordinatorPartition[ShardT]] = {}
        self._is_closed = False

    # Partitions come and go.

    def elected(self, index: int) -> None:
        """This broker leads the partition now, or again in a new epoch: it is loaded again."""
        self.resigned(index)
        if self.kind.loads_when_elected and not self._is_closed:
            self._open(index)

    def resigned(self, index: int) -> None:
        """Another broker leads this partition now, or it is deleted."""
        partition = self._partitions.pop(index, None)
        if partition is not None:
            partition.close()

    def close(self) -> None:
        """Closes every partition; requests that wait are answered with NOT_COORDINATOR."""
        self._is_closed = True
        for index in list(self._partitions):
            self.resigned(index)

    def _open(self, index: int) -> CoordinatorPartition[ShardT]:
        if self._is_closed:
            raise ApiError(ErrorCode.coordinator_not_available)
        log = self._led.open(index)
        partition = CoordinatorPartition(self.kind, index, log, self._clock, self._refusals)
        self._partitions[index] = partition
        return partition

    async def _active(self, index: int) -> CoordinatorPartition[ShardT]:
        partition = self._partitions.get(index)
        if partition is None or partition.is_closed:
            partition = self._open(index)
        if not partition.loading.done():
            await asyncio.wait({partition.loading}, timeout=LOAD_WAIT_S)
            if not partition.loading.done():
                raise ApiError(ErrorCode.coordinator_load_in_progress)
        if partition.loading.cancelled() or partition.loading.exception() is not None:
            self._failed_to_load(index, partition)
            raise ApiError(ErrorCode.not_coordinator)
        if partition.is_closed:
            # Resigned between the end of its loading and now.
            raise ApiError(ErrorCode.not_coordinator)
        return partition

    def _failed_to_load(self, index: int, partition: CoordinatorPartition[ShardT]) -> None:
        """The next request tries again."""
        if self._partitions.get(index) is partition:
            del self._partitions[index]
            failure = (
                "cancelled" if partition.loading.cancelled() else partition.loading.exception()
            )
            logger.error("%s: cannot be loaded: %s", partition.name, failure)

    def new_step(self) -> Step[Any, Any, Any]:
        """A step of this moment, for records that are made before a decision."""
        return Step(self._clock.now_ms(), self.kind.settings)

    # Requests.

    async def decide(
        self,
        index: int,
        decide: Callable[[ShardT, Step[Any, Any, Any]], T],
        *,
        shares: bool = False,
    ) -> T:
        """Lets the shard of a partition decide, and returns its result when that is committed.

        `shares`: many ask for this kind of decision at the same time, and their records may be
        appended together. Raises ApiError.
        """
        partition = self._partitions.get(index)
        if partition is None or not partition.is_active:
            partition = await self._active(index)
        result = partition.decide(decide, shares=shares)
        if partition.is_behind:
            await partition.committed()
        return result

    async def begin_verification(
        self, index: int, producer: ProducerEpoch, *, version_2: bool
    ) -> Verification:
        """See `CoordinatorLog`; raises ApiError."""
        return (await self._active(index)).begin_verification(producer, version_2=version_2)

    async def park(
        self, index: int, decide: Callable[[ShardT, Step[Any, Any, Any], Any], None]
    ) -> Any:
        """The same for a request whose reply comes with this or a later step: `decide` gets the
        reply's token. Raises ApiError."""
        return await (await self._active(index)).park(decide)

    async def decide_in_each(self, decide: Callable[[ShardT, Step[Any, Any, Any]], T]) -> list[T]:
        """Lets the shard of every led partition decide in turn; results are committed.

        Partitions that move away meanwhile are left out. Raises ApiError.
        """
        results = []
        for index in self.led_indexes():
            try:
                results.append(await self.decide(index, decide))
            except ApiError as error:
                if error.code is not ErrorCode.not_coordinator:
                    raise
        return results

    async def write(
        self, index: int, decide: Callable[[ShardT, Step[Any, Any, Any]], T]
    ) -> T | None:
        """Lets the shard of a partition decide; returns the result when that is appended, not
        committed.

        A partition that cannot write now is left out, with a line in the broker's log: None.
        """
        try:
            return await self.decide_appended(index, decide)
        except ApiError as error:
            logger.info("%s-%d: %s", self.kind.topic, index, error)
            return None

    async def decide_appended(
        self, index: int, decide: Callable[[ShardT, Step[Any, Any, Any]], T]
    ) -> T:
        """The same, with the decision's result, which no client may see yet. Raises ApiError."""
        return (await self._active(index)).decide(decide)

    def epoch(self, index: int) -> int | None:
        """The leader epoch under which this broker coordinates the partition; None if it does not,
        or has not loaded it yet."""
        partition = self._partitions.get(index)
        return None if partition is None or not partition.is_active else partition.epoch

    def led_indexes(self) -> Sequence[int]:
        """The partitions that this broker leads now, in order."""
        return sorted(self._led.indexes())
