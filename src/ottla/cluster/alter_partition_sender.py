"""Sends the in-sync sets that leaders propose to the controller: many partitions a request.

One request is in flight at a time; later proposals go with the next one (Kafka's
AlterPartitionManager). A partition has at most one proposal here. A request without a response is
sent again until this controller or the next one answers: only then does the partition know its
current in-sync set. The same is true if the answer for one partition is inconclusive, such as
NOT_CONTROLLER. Kafka sends it again at once (Partition.submitAlterPartition); here the pauses grow,
so that a controller whose metadata is behind the leader's is not flooded.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from ottla.cluster.controller_client import ControllerClient
from ottla.cluster.registration import Registration
from ottla.controller.image import ClusterImage, PartitionState
from ottla.network.peer import PeerError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import ALTER_PARTITION
from ottla.replication.leader import InSyncChange, leaves_open
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock

logger = logging.getLogger("ottla.replication")

VERSION: Final = 3
RETRY_MS: Final = 50
MAX_RETRY_MS: Final = 1_000
MAX_IN_REQUEST: Final = 2_000

_Key = tuple[UUID, int]


class LedPartition(Protocol):
    """A partition, as the sender needs it."""

    topic: str
    index: int

    def in_sync_change(self, now_ms: int) -> InSyncChange | None:
        """The proposal to send now, if any; `now_ms` is monotonic."""

    def in_sync_answered(
        self, code: ErrorCode, state: PartitionState | None, change: InSyncChange
    ) -> None:
        """The controller's answer to `change`; `state` is the current one, if the answer has it."""


class _Unresolved(NamedTuple):
    """A partition whose proposal got an inconclusive answer."""

    partition: LedPartition
    pause_ms: int
    retry_at: float | None
    """When to propose again, on the loop's clock; None after that is sent."""


class AlterPartitionSender:
    """Sends the proposed in-sync sets of this broker's partitions to the controller."""

    def __init__(
        self,
        registration: Registration,
        image: ClusterImage,
        clock: Clock,
        client: ControllerClient,
    ) -> None:
        self._registration = registration
        self._image = image
        self._clock = clock
        self._client = client
        self._waiting: dict[_Key, tuple[LedPartition, InSyncChange]] = {}
        self._unresolved: dict[_Key, _Unresolved] = {}
        self._has_work = asyncio.Event()
        self._background = Background(logger, "the AlterPartition sender")

    def start(self) -> None:
        self._background.keep(self._run)

    async def close(self) -> None:
        await self._background.close()

    def propose(self, partition: LedPartition, change: InSyncChange) -> None:
        """The answer goes to `partition.in_sync_answered`."""
        self._waiting[change.topic_id, change.index] = (partition, change)
        self._has_work.set()

    async def _run(self) -> None:
        self._has_work.set()  # after a failure, proposals may be waiting already
        while True:
            await self._wait_for_work()
            asked = dict(list(self._waiting.items())[:MAX_IN_REQUEST])
            if not asked:
                continue
            answers = await self._ask([change for _, change in asked.values()])
            if answers is None:
                await asyncio.sleep(RETRY_MS / 1000)
                self._has_work.set()
                continue
            for key, (partition, change) in asked.items():
                if self._waiting.get(key, (None, None))[1] is change:
                    del self._waiting[key]
                code, state = answers.get(key, (ErrorCode.unknown_server_error, None))
                partition.in_sync_answered(code, state, change)
                self._answered(key, partition, code)
            if self._waiting:
                self._has_work.set()

    async def _wait_for_work(self) -> None:
        """Waits for a new proposal, or for the time of a retry."""
        retries = (each.retry_at for each in self._unresolved.values() if each.retry_at is not None)
        due = min(retries, default=None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await self._has_work.wait()
        self._has_work.clear()
        now, now_ms = asyncio.get_running_loop().time(), self._clock.monotonic_ms()
        for key, each in list(self._unresolved.items()):
            if each.retry_at is None or each.retry_at > now:
                continue
            # None: a delta came first, or another broker leads now.
            change = each.partition.in_sync_change(now_ms)
            if change is None:
                del self._unresolved[key]
            else:
                self._unresolved[key] = each._replace(retry_at=None)
                self.propose(each.partition, change)

    def _answered(self, key: _Key, partition: LedPartition, code: ErrorCode) -> None:
        former = self._unresolved.pop(key, None)
        if not leaves_open(code):
            return
        pause_ms = RETRY_MS if former is None else min(2 * former.pause_ms, MAX_RETRY_MS)
        logger.info("%s-%d: in-sync change: %s", partition.topic, partition.index, code.name)
        retry_at = asyncio.get_running_loop().time() + pause_ms / 1000
        self._unresolved[key] = _Unresolved(partition, pause_ms, retry_at)

    async def _ask(
        self, changes: list[InSyncChange]
    ) -> dict[_Key, tuple[ErrorCode, PartitionState | None]] | None:
        """The controller's answers; None if the request must be sent again."""
        try:
            response = await self._client.ask(self._request(changes))
        except PeerError as error:
            logger.info("in-sync changes: %s", error)
            return None
        if response.error_code is not ErrorCode.none:
            return None
        return {
            (topic.topic_id, each.partition_index): (each.error_code, self._state(topic, each))
            for topic in response.topics
            for each in topic.partitions
        }

    def _request(self, changes: list[InSyncChange]) -> Any:
        build = messages_of(ALTER_PARTITION, VERSION, "request")
        topics: dict[UUID, list[Any]] = {}
        for change in changes:
            topics.setdefault(change.topic_id, []).append(
                build.PartitionData(
                    partition_index=change.index,
                    leader_epoch=change.leader_epoch,
                    partition_epoch=change.partition_epoch,
                    new_isr_with_epochs=tuple(
                        build.BrokerState(broker_id=broker, broker_epoch=epoch)
                        for broker, epoch in change.isr
                    ),
                )
            )
        return build.AlterPartitionRequest(
            broker_id=self._registration.broker_id,
            broker_epoch=self._registration.broker_epoch,
            topics=tuple(
                build.TopicData(topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in topics.items()
            ),
        )

    def _state(self, topic: Any, each: Any) -> PartitionState | None:
        """The controller's state: its answer, with the replicas from this broker's image."""
        known = self._image.topic_by_id(topic.topic_id)
        if each.error_code is not ErrorCode.none or known is None:
            return None
        state: PartitionState = known.partitions[each.partition_index]._replace(
            leader=each.leader_id,
            leader_epoch=each.leader_epoch,
            isr=tuple(each.isr),
            partition_epoch=each.partition_epoch,
        )
        return state
