"""Applies metadata deltas to this broker's partitions: opens, leads, follows or deletes them.

A broker holds the partitions whose replicas name it, no others. What it no longer holds (its topic
is deleted, or made again under another id; the replica was reassigned away) is set aside at once
and removed later. Nothing is deleted, and no role begins, but on the word of a controller that
knows this life of the broker: the first image may be a deposed one's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.broker.partition import Partition, Role
from ottla.broker.waiting import Change, wake
from ottla.controller.image import (
    BrokerConfigChanged,
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
from ottla.log.partition_metadata import read_topic_id
from ottla.protocol.errors import ApiError
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.replication.life import in_this_life, knows_this_life

if TYPE_CHECKING:
    from ottla.broker.node import Node

logger = logging.getLogger("ottla.topics")

PARTITIONS_A_SLICE = 100


class MetadataApplier:
    """Keeps `node.partitions`, their roles and what is copied as the image says."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._fetchers = node.replica_fetchers
        self._leader_throttle = node.leader_throttle
        self._has_opened = False
        self._was_known = False

    async def open_all(self) -> None:
        """At the start: every partition that the image places here, with the log found in the
        folder or a new one. Roles wait for a controller that knows this life; so do folders of what
        is not placed here.

        Raises ApiError KAFKA_STORAGE_ERROR.
        """
        for topic in list(self._node.image.topics.values()):
            await self._take_in(topic, range(len(topic.partitions)))
        self._has_opened = True

    async def tell(self, delta: MetadataDelta) -> None:
        """Apply one delta that is in the image already."""
        match delta:
            case TopicCreated(topic):
                await self._take_in(topic, range(len(topic.partitions)))
            case PartitionsAdded(topic, first):
                await self._take_in(topic, range(first, len(topic.partitions)))
            case PartitionsChanged(topic, partitions):
                await self._take_in(topic, partitions)
            case TopicDeleted(topic):
                await self._topic_deleted(topic)
            case TopicConfigChanged(topic):
                self._configure(topic.name)
            case BrokerConfigChanged():
                for name in self._node.partitions.topics():
                    self._configure(name)
            case DirectoryChanged(broker_id):
                if broker_id == self._node.config.id:
                    await self._known()

    @property
    def _is_known(self) -> bool:
        """The image may be believed; see `replication.life`."""
        return knows_this_life(self._node.image, *self._life)

    @property
    def _life(self) -> tuple[int, int, str]:
        node = self._node
        return node.config.id, node.membership.first_epoch, node.store.metadata.directory_id

    async def _known(self) -> None:
        """The controller has taken in this broker's registration: roles begin, and folders of what
        is not placed here are set aside as deleted.
        """
        if self._was_known or not self._is_known:
            return
        self._was_known = True
        node = self._node
        for topic in list(node.image.topics.values()):
            await self._take_in(topic, range(len(topic.partitions)))
        held = {(each.topic, each.index) for each in node.partitions}
        for name, index in [name for name in node.store.logs if name not in held]:
            logger.warning("%s-%d has no place on this broker: its folder is deleted", name, index)
            self._delete(name, index)

    async def _take_in(self, topic: TopicImage, indexes: Iterable[int]) -> None:
        node = self._node
        opened = False
        for number, index in enumerate(indexes, start=1):
            if number % PARTITIONS_A_SLICE == 0:
                await asyncio.sleep(0)  # other requests get their turn
            partition = node.partitions.get(topic.name, index)
            if partition is not None and partition.topic_id != topic.topic_id:
                self._drop(partition)
                partition = None
            state = topic.partitions[index]
            if node.config.id not in state.replicas:
                if partition is not None:
                    logger.info("%s-%d is no longer placed here", topic.name, index)
                    self._drop(partition)
                continue
            if partition is None:
                try:
                    partition = self._open(topic, index)
                except ApiError as error:
                    if not self._has_opened:
                        raise
                    # One folder that the disk refuses must not keep the others from their roles.
                    logger.error("cannot open %s-%d: %s", topic.name, index, error)
                    node.storage_failure.failed(topic.name, index, state, error)
                    continue
                if partition is None:
                    continue
                opened = True
            self._assign(partition, state)
        if opened:
            self._configure(topic.name)

    def _open(self, topic: TopicImage, index: int) -> Partition | None:
        """None where another topic's folder is in the way, and may be the right one."""
        node = self._node
        log = node.store.logs.get((topic.name, index))
        if log is not None:
            topic_id = log.topic_id or read_topic_id(log.folder)
            if topic_id not in (None, topic.topic_id):
                if not self._is_known:
                    return None
                # Left over from a topic of the same name that was deleted (KIP-516).
                self._delete(topic.name, index)
                log = None
        after_crash = log is not None and not node.store.was_clean
        if log is None:
            config = node.log_config(topic.name)
            now_ms = node.clock.now_ms()
            log = node.store.create(topic.name, index, config, topic.topic_id, now_ms)
        else:
            log.topic_id = topic.topic_id
        partition = Partition(
            topic.name,
            index,
            topic.topic_id,
            log,
            broker_id=node.config.id,
            high_watermark=node.store.high_watermarks.get((topic.name, index), 0),
            lag_max_ms=node.config.replica_lag_time_max_ms,
            live_epoch=self._live_epoch,
            eligible=self._may_join,
            remove=node.care.later,
            clock=node.clock,
            journey=node.journey,
            write_failed=node.storage_failure.write_failed,
            after_crash=after_crash,
        )
        # Before it has a role: a leader counts by it who must be in sync.
        partition.min_insync_replicas = node.topic_config(topic.name).min_insync_replicas
        node.partitions.add(partition)
        return partition

    def _may_join(self, partition: object) -> None:
        assert isinstance(partition, Partition)
        self._node.in_sync_care.look(partition)

    def _live_epoch(self, broker_id: int) -> int | None:
        broker = self._node.image.brokers.get(broker_id)
        return None if broker is None else broker.epoch

    def _assign(self, partition: Partition, state: PartitionState) -> None:
        """Gives the partition its role, and tells who depends on it."""
        node = self._node
        state = in_this_life(state, node.image, *self._life)
        before = partition.role, partition.leader_epoch
        leader_before = None if partition.state is None else partition.state.leader
        role = partition.update(state, self._node.clock.now_ms())
        assert partition.state is not None
        if role is not Role.FOLLOWER:
            self._fetchers.unfollow(partition)
        elif (*before, leader_before) != (role, partition.leader_epoch, partition.state.leader):
            self._fetchers.follow(partition)
        if partition.topic == OFFSETS_TOPIC and self._has_opened:
            if role is Role.LEADER and before != (role, partition.leader_epoch):
                self._node.groups.elected(partition.index)
            elif role is not Role.LEADER and before[0] is Role.LEADER:
                self._node.groups.resigned(partition.index)

    async def _topic_deleted(self, topic: TopicImage) -> None:
        node = self._node
        for number, partition in enumerate(node.partitions.of_topic(topic.name), start=1):
            if number % PARTITIONS_A_SLICE == 0:
                await asyncio.sleep(0)
            self._drop(partition)
        self._fetchers.throttle.forget(topic.name)
        self._leader_throttle.forget(topic.name)
        if topic.name != OFFSETS_TOPIC:
            await node.groups.topic_deleted(topic.name, topic.topic_id)

    def _drop(self, partition: Partition) -> None:
        """This broker holds the partition no more."""
        self._fetchers.unfollow(partition)
        self._node.partitions.remove(partition)
        partition.closed()
        if self._is_known:
            self._delete(partition.topic, partition.index)
        if partition.topic == OFFSETS_TOPIC and self._has_opened:
            self._node.groups.resigned(partition.index)
        wake(partition, Change.GONE)

    def _configure(self, name: str) -> None:
        log_config, config = self._node.log_config(name), self._node.topic_config(name)
        self._leader_throttle.configure(name, config.leader_replication_throttled_replicas)
        self._fetchers.throttle.configure(name, config.follower_replication_throttled_replicas)
        for partition in self._node.partitions.of_topic(name):
            partition.log.config = log_config
            partition.min_insync_replicas = config.min_insync_replicas

    def _delete(self, topic: str, index: int) -> None:
        try:
            removal = self._node.store.delete(topic, index)
        except ApiError as error:
            logger.error("%s-%d: %s", topic, index, error)
            return
        self._node.care.deleted(removal)
