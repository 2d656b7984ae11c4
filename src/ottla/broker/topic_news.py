"""What the controller's news mean for this broker's logs: opened, configured, deleted."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.broker.partition import Partition
from ottla.broker.waiting import wake
from ottla.controller.image import (
    BrokerConfigChanged,
    News,
    PartitionsAdded,
    TopicConfigChanged,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)
from ottla.log.partition_metadata import read_topic_id
from ottla.protocol.errors import ApiError

if TYPE_CHECKING:
    from ottla.broker.node import Node

logger = logging.getLogger("ottla.topics")

PARTITIONS_A_SLICE = 100
OFFSETS_TOPIC = "__consumer_offsets"


class TopicNews:
    """Keeps `node.partitions` as the image says."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def open_all(self) -> None:
        """At the start: every partition of the image, with the log found in the folder or a new
        one; folders that belong to no topic are set aside as deleted.
        """
        node = self._node
        for topic in node.image.topics.values():
            await self._open(topic, 0)
        held = {(each.topic, each.index) for each in node.partitions}
        for name, index in [name for name in node.store.logs if name not in held]:
            logger.warning("%s-%d belongs to no topic: its folder is deleted", name, index)
            self._delete(name, index)

    async def tell(self, news: News) -> None:
        """One piece of news, after the image has it."""
        match news:
            case TopicCreated(topic):
                await self._open(topic, 0)
            case PartitionsAdded(topic, first):
                await self._open(topic, first)
            case TopicDeleted(topic):
                await self._topic_deleted(topic)
            case TopicConfigChanged(topic):
                self._configure(topic.name)
            case BrokerConfigChanged():
                for name in self._node.image.topics:
                    self._configure(name)

    async def _open(self, topic: TopicImage, first: int) -> None:
        node = self._node
        now_ms = node.clock.now_ms()
        config = node.log_config(topic.name)
        min_insync_replicas = node.topic_config(topic.name).min_insync_replicas
        for index in range(first, len(topic.partitions)):
            if index % PARTITIONS_A_SLICE == PARTITIONS_A_SLICE - 1:
                await asyncio.sleep(0)  # other requests get their turn
            log = node.store.logs.get((topic.name, index))
            if log is not None and read_topic_id(log.folder) not in (None, topic.topic_id):
                # Left over from a topic of the same name that was deleted (KIP-516).
                self._delete(topic.name, index)
                log = None
            after_crash = log is not None and not node.store.was_clean
            if log is None:
                log = node.store.create(topic.name, index, config, topic.topic_id, now_ms)
            log.config = config
            partition = Partition(
                topic.name,
                index,
                topic.topic_id,
                log,
                leader_epoch=topic.partitions[index].leader_epoch,
                clock=node.clock,
                journey=node.journey,
                after_crash=after_crash,
            )
            partition.min_insync_replicas = min_insync_replicas
            node.partitions.add(partition)

    async def _topic_deleted(self, topic: TopicImage) -> None:
        node = self._node
        for partition in node.partitions.remove_topic(topic.name):
            partition.closed()
            self._delete(partition.topic, partition.index)
            if topic.name == OFFSETS_TOPIC:
                node.groups.resigned(partition.index)
            wake(partition)
        if topic.name != OFFSETS_TOPIC:
            await node.groups.topic_deleted(topic.name, topic.topic_id)

    def _configure(self, name: str) -> None:
        config = self._node.log_config(name)
        min_insync_replicas = self._node.topic_config(name).min_insync_replicas
        for partition in self._node.partitions.of_topic(name):
            partition.log.config = config
            partition.min_insync_replicas = min_insync_replicas

    def _delete(self, topic: str, index: int) -> None:
        try:
            removal = self._node.store.delete(topic, index)
        except ApiError as error:
            logger.error("%s-%d: %s", topic, index, error)
            return
        self._node.care.later(removal)
