"""Applies metadata deltas to this broker's partitions: opens, leads, follows or deletes them.

A broker holds exactly the partitions that have it as a replica. A partition that it no longer holds
(its topic is deleted, or the replica was reassigned) is renamed at once and removed later. Where
the metadata only lacks a partition, its folder is set aside (`strays`). Folders are renamed and
roles assigned only by a controller that knows this incarnation of the broker: the first image may
come from a deposed controller.

A partition that cannot be opened, or that cannot take its role, is tried again. In most cases too
many files are open; no later delta need name the partition, so it would stay without a leader until
the next start. Kafka takes the log directory offline (ReplicaManager.applyDelta,
LogDirFailureChannel), and a broker without another one stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final
from uuid import UUID

from ottla.cluster.partition_opener import PartitionOpener
from ottla.cluster.registration import Registration
from ottla.cluster.strays import Strays, was_moved_away, why_unplaced
from ottla.cluster.topic_settings import TopicSettings
from ottla.controller.image import (
    NO_LEADER,
    BrokerConfigChanged,
    ClusterImage,
    DirectoryChanged,
    MetadataDelta,
    PartitionsAdded,
    PartitionsChanged,
    PartitionState,
    TopicConfigChanged,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)
from ottla.coordinator.coordinators import Coordinators
from ottla.log.errors import OutOfFilesError, storage_error
from ottla.protocol.errors import ApiError
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.replica.partition import Partition
from ottla.replica.partition_role import Role
from ottla.replica.partitions import Partitions
from ottla.replica.replica_fetchers import ReplicaFetchers
from ottla.replica.throttle import Throttle
from ottla.replication.incarnation import in_this_incarnation, knows_this_incarnation
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock
from ottla.runtime.repeated_failure import RepeatedFailure
from ottla.runtime.slices import Slices
from ottla.runtime.waiting import Change, wake
from ottla.storage.storage_failure import StorageFailure

logger = logging.getLogger("ottla.topics")

PARTITIONS_A_SLICE = 100
OPEN_AGAIN_MS: Final = 100
MAX_OPEN_AGAIN_MS: Final = 5_000
"""Between two attempts to open partitions, which double from the one to the other."""


class MetadataApplier:
    """Keeps this broker's partitions, their roles and their fetchers as the image has them."""

    def __init__(
        self,
        registration: Registration,
        directory_id: str,
        image: ClusterImage,
        clock: Clock,
        partitions: Partitions,
        opener: PartitionOpener,
        settings: TopicSettings,
        fetchers: ReplicaFetchers,
        leader_throttle: Throttle,
        coordinators: Coordinators,
        forget_offsets: Callable[[str, UUID], Awaitable[None]],
        failure: StorageFailure,
        strays: Strays,
        between_deltas: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]],
    ) -> None:
        """`directory_id` is the data folder's; `leader_throttle` limits what leaders here send;
        `forget_offsets` deletes the committed offsets of a deleted topic; `between_deltas` does
        work while no deltas are being applied (`ClusterView`).
        """
        self._registration = registration
        self._directory_id = directory_id
        self._image = image
        self._clock = clock
        self._partitions = partitions
        self._opener = opener
        self._settings = settings
        self._fetchers = fetchers
        self._leader_throttle = leader_throttle
        self._coordinators = coordinators
        self._forget_offsets = forget_offsets
        self._failure = failure
        self._strays = strays
        self._between_deltas = between_deltas
        self._sweep_due = asyncio.Event()
        self._unopened: dict[tuple[str, int], None] = {}
        """The partitions that could not be opened, or could not take their role."""
        self._open_again_due = asyncio.Event()
        self._unopenable = RepeatedFailure(logger, logging.ERROR, clock)
        self._background = Background(logger, "opening partitions and taking away folders")
        self._slices = Slices(PARTITIONS_A_SLICE)
        """Counts over all topics: thousands of them may have one partition each."""
        self._has_opened = False
        self._was_known = False
        self._is_ousted = False

    def start(self) -> None:
        """Begins to take away folders that belong to no partition here, and to try again what could
        not be opened.
        """
        self._background.keep(self._sweep_when_due)
        self._background.keep(self._open_again_when_due)

    async def close(self) -> None:
        await self._background.close()

    async def open_all(self) -> None:
        """At the start: opens every partition that the image places here, with the log found in
        the folder or a new one. Roles, and deletions of folders that are not placed here, wait
        for a controller that knows this incarnation.

        Raises ApiError KAFKA_STORAGE_ERROR.
        """
        for topic in list(self._image.topics.values()):
            await self._apply_states(topic, range(len(topic.partitions)))
        self._has_opened = True

    async def apply(self, delta: MetadataDelta) -> None:
        """Apply one delta that is in the image already."""
        match delta:
            case TopicCreated(topic):
                await self._apply_states(topic, range(len(topic.partitions)))
            case PartitionsAdded(topic, first):
                await self._apply_states(topic, range(first, len(topic.partitions)))
            case PartitionsChanged(topic, partitions):
                await self._apply_states(topic, partitions)
            case TopicDeleted(topic, by_request):
                await self._topic_gone(topic, by_request)
            case TopicConfigChanged(topic):
                self._configure(topic.name)
            case BrokerConfigChanged():
                await self._fetchers.resize()
                for name in list(self._partitions.topics()):
                    await self._slices.count()
                    self._configure(name)
            case DirectoryChanged(broker_id):
                if broker_id == self._registration.broker_id:
                    await self._known()

    async def give_up(self) -> None:
        """Another process has this broker's id, and the image is about that one: takes no role and
        deletes nothing from now on, and gives up the roles that it has.
        """
        self._is_ousted = True
        for partition in list(self._partitions):
            await self._slices.count()
            if partition.state is not None:
                self._assign(partition, partition.state)

    @property
    def _is_known(self) -> bool:
        """Whether the image can be trusted; see `replication.incarnation`."""
        return not self._is_ousted and knows_this_incarnation(self._image, *self._incarnation)

    @property
    def _incarnation(self) -> tuple[int, int, str]:
        own = self._registration
        return own.broker_id, own.first_epoch, self._directory_id

    async def _known(self) -> None:
        """The controller knows this broker's registration: assigns roles, and deletes the folders
        of partitions that are not placed here.
        """
        if self._was_known or not self._is_known:
            return
        self._was_known = True
        for topic in list(self._image.topics.values()):
            await self._apply_states(topic, range(len(topic.partitions)))
        await self._sweep()
        self._strays.check_earlier()

    async def _sweep(self) -> None:
        """Takes away the folders of all logs that belong to no partition here."""
        if not self._is_known:
            return
        held = {(each.topic, each.index) for each in self._partitions}
        for name, index in self._opener.unplaced(held):
            await self._slices.count()
            self._opener.take_away(name, index, self._image, self._registration.broker_id)

    async def _sweep_when_due(self) -> None:
        """The deltas between two images come one by one: a topic that one takes away may be there
        again with the next. So this waits until all are applied.
        """
        while True:
            await self._sweep_due.wait()
            self._sweep_due.clear()
            await self._between_deltas(self._sweep)

    async def _open_again_when_due(self) -> None:
        while True:
            await self._open_again_due.wait()
            self._open_again_due.clear()
            pause_ms = OPEN_AGAIN_MS
            while self._unopened:
                await asyncio.sleep(pause_ms / 1000)
                pause_ms = min(2 * pause_ms, MAX_OPEN_AGAIN_MS)
                await self._between_deltas(self._open_again)

    async def _open_again(self) -> None:
        left = self._unopened
        self._unopened = {}
        while left:
            name, index = next(iter(left))
            del left[name, index]
            topic = self._image.topic(name)
            if topic is not None and index < len(topic.partitions):
                await self._apply_states(topic, (index,), is_again=True)
            if self._unopened:
                # One is enough to know: thousands may have failed for the same reason. It comes
                # last at the next attempt, as its reason may be its own.
                self._unopened = left | self._unopened
                return
        logger.info("all partitions are open now")

    async def _apply_states(
        self, topic: TopicImage, indexes: Iterable[int], *, is_again: bool = False
    ) -> None:
        opened = False
        for index in indexes:
            await self._slices.count()
            before = self._partitions.get(topic.name, index)
            state = topic.partitions[index]
            try:
                await self._apply_state(topic, index, state)
            except (ApiError, OSError) as error:
                if not self._has_opened:
                    raise
                # A disk failure of one folder must not keep other partitions from their roles.
                doing = f"cannot open {topic.name}-{index}"
                failure = storage_error(doing, error) if isinstance(error, OSError) else error
                self._unopened[topic.name, index] = None
                self._open_again_due.set()
                if isinstance(failure, OutOfFilesError):
                    self._unopenable.log("%s, and try again: %s", doing, failure)
                elif is_again:
                    self._unopenable.log("%s: %s", doing, error)
                else:
                    logger.error("%s: %s", doing, error)
                    self._failure.failed(topic.name, index, state, failure)
            after = self._partitions.get(topic.name, index)
            opened |= after is not None and after is not before
        if opened:
            self._configure(topic.name)

    async def _apply_state(self, topic: TopicImage, index: int, state: PartitionState) -> None:
        """Raises ApiError KAFKA_STORAGE_ERROR, OSError."""
        partition = self._partitions.get(topic.name, index)
        if partition is not None and partition.topic_id != topic.topic_id:
            self._drop(partition, may_delete=False)
            partition = None
        if self._registration.broker_id not in state.replicas:
            if partition is not None:
                logger.info("%s-%d is no longer placed here", topic.name, index)
                moved = self._was_moved_away(partition, state)
                self._drop(partition, may_delete=moved)
                if self._is_known and not moved:
                    why = why_unplaced(self._image, topic.name, index, topic.topic_id)
                    self._strays.put_aside(topic.name, index, why)
            return
        if partition is None:
            partition = await self._opener.open(
                topic, index, self._image, may_rename=self._is_known
            )
            if partition is None:
                return
            self._partitions.add(partition)
        self._assign(partition, state)

    def _assign(self, partition: Partition, state: PartitionState) -> None:
        """Assigns the partition's role, and notifies fetchers and coordinators."""
        state = in_this_incarnation(
            state,
            self._image,
            *self._incarnation,
            previous_epoch=self._registration.previous_epoch,
        )
        if self._is_ousted:
            state = state._replace(leader=NO_LEADER)
        before = partition.role, partition.leader_epoch
        leader_before = None if partition.state is None else partition.state.leader
        role = partition.update(state, self._clock.now_ms())
        assert partition.state is not None
        if role is not Role.FOLLOWER:
            self._fetchers.unfollow(partition)
        elif (*before, leader_before) != (role, partition.leader_epoch, partition.state.leader):
            self._fetchers.follow(partition)
        if self._has_opened:
            if role is Role.LEADER and before != (role, partition.leader_epoch):
                self._coordinators.elected(partition.topic, partition.index)
            elif role is not Role.LEADER and before[0] is Role.LEADER:
                self._coordinators.resigned(partition.topic, partition.index)

    def _was_moved_away(self, partition: Partition, state: PartitionState) -> bool:
        """A state of a lower partition epoch is that of an older tree."""
        before = partition.state
        is_newer = before is None or before.partition_epoch < state.partition_epoch
        latest = partition.log.epochs.latest
        own_id = self._registration.broker_id
        return is_newer and was_moved_away(state, self._image, own_id, latest)

    async def _topic_gone(self, topic: TopicImage, by_request: bool) -> None:
        for partition in self._partitions.of_topic(topic.name):
            await self._slices.count()
            self._drop(partition, may_delete=by_request)
        self._fetchers.throttle.forget(topic.name)
        self._leader_throttle.forget(topic.name)
        if not by_request:
            self._strays.vanished(topic)
        elif topic.name != OFFSETS_TOPIC:
            await self._forget_offsets(topic.name, topic.topic_id)

    def _drop(self, partition: Partition, *, may_delete: bool) -> None:
        """Closes a partition that is no longer on this broker. Without `may_delete`, its log waits
        for the next image, or for being set aside.
        """
        self._fetchers.unfollow(partition)
        self._partitions.remove(partition)
        partition.closed()
        if self._is_known and may_delete:
            self._opener.delete(partition.topic, partition.index)
        elif self._is_known:
            self._sweep_due.set()
        if self._has_opened:
            self._coordinators.resigned(partition.topic, partition.index)
        wake(partition, Change.GONE)

    def _configure(self, name: str) -> None:
        log_config, config = self._settings.log_config(name), self._settings.topic_config(name)
        self._settings.report(name)
        self._leader_throttle.configure(name, config.leader_replication_throttled_replicas)
        self._fetchers.throttle.configure(name, config.follower_replication_throttled_replicas)
        for partition in self._partitions.of_topic(name):
            partition.log.config = log_config
            partition.min_insync_replicas = config.min_insync_replicas
