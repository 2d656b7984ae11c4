"""Opens the partitions that belong on this broker, and takes away the folders of those that do not.

A partition opens with the log found in its folder, or with a new one. A folder may belong to an
earlier topic of the same name: its topic id shows that (KIP-516). It is then set aside, and deleted
only if that topic was deleted (`strays`).
"""

from __future__ import annotations

import logging

from ottla.cluster.strays import Strays, was_moved_away, why_unplaced
from ottla.cluster.topic_settings import TopicSettings
from ottla.controller.image import ClusterImage, TopicImage
from ottla.log.partition_metadata import make_folder, read_topic_id
from ottla.protocol.errors import ApiError
from ottla.replica.partition import Partition
from ottla.replica.partition_host import PartitionHost
from ottla.storage.log_maintenance import LogMaintenance
from ottla.storage.log_store import LogStore

logger = logging.getLogger("ottla.topics")


class PartitionOpener:
    """Opens partitions without a role; all of them share `host`."""

    def __init__(
        self,
        store: LogStore,
        settings: TopicSettings,
        maintenance: LogMaintenance,
        host: PartitionHost,
        strays: Strays,
    ) -> None:
        self._store = store
        self._settings = settings
        self._maintenance = maintenance
        self._host = host
        self._strays = strays

    async def open(
        self, topic: TopicImage, index: int, image: ClusterImage, *, may_rename: bool
    ) -> Partition | None:
        """Returns None if another topic's folder has this name and must not be renamed.

        A new log waits until the checkpoint files no longer name a deleted one. Raises ApiError
        KAFKA_STORAGE_ERROR.
        """
        store = self._store
        log = store.logs.get((topic.name, index))
        topic_id = None
        if log is not None:
            topic_id = log.topic_id or read_topic_id(log.folder)
            if topic_id not in (None, topic.topic_id):
                if not may_rename:
                    return None
                why = why_unplaced(image, topic.name, index, topic_id)
                self._strays.put_aside(topic.name, index, why)
                log = None
        after_crash = log is not None and not store.was_clean
        if log is None:
            await self._maintenance.free(topic.name, index)
            config, now_ms = self._settings.log_config(topic.name), self._host.clock.now_ms()
            log = store.create(topic.name, index, config, topic.topic_id, now_ms)
        else:
            if topic_id is None and log.end_offset > 0:
                # Kafka calls it a stray (BrokerMetadataPublisher). Here the records stay in use:
                # a topic of that name is there, and nothing says that they are another's.
                logger.warning(
                    "%s-%d: %s/partition.metadata is missing or damaged: the folder is taken for"
                    " topic %s by its name, and gets a new one",
                    topic.name, index, log.folder, topic.name,
                )  # fmt: skip
                make_folder(log.folder, topic.topic_id)
            log.topic_id = topic.topic_id
        partition = Partition(
            topic.name,
            index,
            topic.topic_id,
            log,
            self._host,
            high_watermark=store.high_watermarks.get((topic.name, index), 0),
            after_crash=after_crash,
        )
        # Before it gets a role: a leader needs it to check the size of the in-sync set.
        settings = self._settings.topic_config(topic.name)
        partition.min_insync_replicas = settings.min_insync_replicas
        return partition

    def delete(self, topic: str, index: int) -> None:
        """Deletes a partition's folder: renames it now, removes it later. Logs errors."""
        try:
            removal = self._store.delete(topic, index)
        except ApiError as error:
            logger.error("%s-%d: %s", topic, index, error)
            return
        self._maintenance.deleted(removal)

    def unplaced(self, held: set[tuple[str, int]]) -> list[tuple[str, int]]:
        """The logs in the data folder that are not among `held`."""
        return [name for name in self._store.logs if name not in held]

    def take_away(self, topic: str, index: int, image: ClusterImage, broker_id: int) -> None:
        """Deletes the folder of a log that belongs to no partition of this broker, if the image
        proves that other brokers have it; else sets it aside. Logs errors.
        """
        log = self._store.logs[topic, index]
        topic_id = log.topic_id or read_topic_id(log.folder)
        found = None if topic_id is None else image.topic_by_id(topic_id)
        if found is not None and found.name == topic and index < len(found.partitions):
            state = found.partitions[index]
            if was_moved_away(state, image, broker_id, log.epochs.latest):
                logger.info("%s-%d was moved to other brokers: deleting its folder", topic, index)
                self.delete(topic, index)
                return
        self._strays.put_aside(topic, index, why_unplaced(image, topic, index, topic_id))
