"""Leaders' proposals of in-sync sets, on their way to the controller: many partitions a request.

One request is under way at a time; what is proposed meanwhile goes with the next (Kafka's
AlterPartitionManager). A partition has at most one proposal here. An answer that does not come is
asked for again until the controller, this one or the next, gives it: only then does the partition
know which in-sync set holds. So it is where the answer for one partition says nothing for certain,
as NOT_CONTROLLER; Kafka sends that again at once (Partition.submitAlterPartition), here it pauses
for longer each time, so that a controller that hears late of what a leader knows is not hammered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from ottla.broker.background import Background
from ottla.broker.controller_client import ask_controller
from ottla.controller.image import PartitionState
from ottla.network.peer import PeerError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import ALTER_PARTITION
from ottla.replication.leader import InSyncChange, leaves_open

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.broker.partition import Partition

logger = logging.getLogger("ottla.replication")

VERSION: Final = 3
RETRY_MS: Final = 50
MAX_RETRY_MS: Final = 1_000
MAX_IN_REQUEST: Final = 2_000

_Key = tuple[UUID, int]


class _Open(NamedTuple):
    """A partition whose proposal was answered, but not for certain."""

    partition: Partition
    pause_ms: int
    look_at: float | None
    """When it is asked what to send again, by the loop's clock; None once that is sent."""


class InSyncChanges:
    """See the module's text."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._waiting: dict[_Key, tuple[Partition, InSyncChange]] = {}
        self._open: dict[_Key, _Open] = {}
        self._some = asyncio.Event()
        self._background = Background(logger, "proposing in-sync sets")

    def start(self) -> None:
        self._background.keep(self._run)

    async def close(self) -> None:
        await self._background.close()

    def propose(self, partition: Partition, change: InSyncChange) -> None:
        """The answer goes to `partition.in_sync_answered`."""
        self._waiting[change.topic_id, change.index] = (partition, change)
        self._some.set()

    async def _run(self) -> None:
        self._some.set()  # after a failure some may wait already
        while True:
            await self._some_to_send()
            asked = dict(list(self._waiting.items())[:MAX_IN_REQUEST])
            if not asked:
                continue
            answers = await self._ask([change for _, change in asked.values()])
            if answers is None:
                await asyncio.sleep(RETRY_MS / 1000)
                self._some.set()
                continue
            for key, (partition, change) in asked.items():
                if self._waiting.get(key, (None, None))[1] is change:
                    del self._waiting[key]
                code, state = answers.get(key, (ErrorCode.unknown_server_error, None))
                partition.in_sync_answered(code, state, change)
                self._answered(key, partition, code)
            if self._waiting:
                self._some.set()

    async def _some_to_send(self) -> None:
        """Waits until something is proposed, or is to be proposed again."""
        looks = (each.look_at for each in self._open.values() if each.look_at is not None)
        due = min(looks, default=None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await self._some.wait()
        self._some.clear()
        now, now_ms = asyncio.get_running_loop().time(), self._node.clock.monotonic_ms()
        for key, each in list(self._open.items()):
            if each.look_at is None or each.look_at > now:
                continue
            # None: a delta came first, or another broker leads now.
            change = each.partition.in_sync_change(now_ms)
            if change is None:
                del self._open[key]
            else:
                self._open[key] = each._replace(look_at=None)
                self.propose(each.partition, change)

    def _answered(self, key: _Key, partition: Partition, code: ErrorCode) -> None:
        former = self._open.pop(key, None)
        if not leaves_open(code):
            return
        pause_ms = RETRY_MS if former is None else min(2 * former.pause_ms, MAX_RETRY_MS)
        logger.info("%s-%d: in-sync change: %s", partition.topic, partition.index, code.name)
        look_at = asyncio.get_running_loop().time() + pause_ms / 1000
        self._open[key] = _Open(partition, pause_ms, look_at)

    async def _ask(
        self, changes: list[InSyncChange]
    ) -> dict[_Key, tuple[ErrorCode, PartitionState | None]] | None:
        """The controller's answers; None where it must be asked again."""
        try:
            response = await ask_controller(self._node, self._request(changes))
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
            broker_id=self._node.config.id,
            broker_epoch=self._node.membership.broker_epoch,
            topics=tuple(
                build.TopicData(topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in topics.items()
            ),
        )

    def _state(self, topic: Any, each: Any) -> PartitionState | None:
        """The state that the controller knows: its answer, and the replicas of our image."""
        known = self._node.image.topic_by_id(topic.topic_id)
        if each.error_code is not ErrorCode.none or known is None:
            return None
        state: PartitionState = known.partitions[each.partition_index]._replace(
            leader=each.leader_id,
            leader_epoch=each.leader_epoch,
            isr=tuple(each.isr),
            partition_epoch=each.partition_epoch,
        )
        return state
