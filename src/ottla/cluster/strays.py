"""Folders of partitions that belong to no topic here: deleted with proof, kept without.

That the cluster's metadata lacks a topic proves nothing: one flipped bit in the tree or in
`partition.metadata`, or a tree restored from an older backup, and it lacks one that has records.
Proof of a deletion is its note in the tree (`controller.deletion_notes`). Of a partition that was
moved to other brokers the metadata itself says so; see `was_moved_away`.

Without proof the folder is renamed to `<topic>-<partition>.<uuid>-stray` and kept, as by Kafka's
LogManager.loadLog, one line says so, and `ottla log stray` decides. Kafka keeps also the folders
of topics that were deleted while a broker was away: it has no proof of a deletion.

A folder is set aside at once, so that its name is free; the notes are read afterwards. A folder
whose topic is noted is then deleted. This is also tried with strays of earlier runs, which may not
have reached the tree.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final, Protocol
from uuid import UUID

from ottla.controller.image import ClusterImage, PartitionState, TopicImage
from ottla.coordination.embedded_store import StoreError
from ottla.coordination.tree import CoordinationError
from ottla.protocol.errors import ApiError
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.protocol.kafka_uuid import uuid_text
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock
from ottla.storage.log_maintenance import LogMaintenance
from ottla.storage.log_store import LogStore
from ottla.storage.stray_folder import StrayFolder, folder_bytes, stray_folders

logger = logging.getLogger("ottla.strays")

READ_AGAIN_MS: Final = 2_000
"""A server of an ensemble may not have the newest notes yet: they are read a second time."""
MAX_LINES: Final = 20
"""The most folders, or topics, that are named one by one."""
STRAYS_A_SLICE: Final = 100


class RecordedTopics(Protocol):
    """What is recorded about topics beside something else, and goes with them."""

    async def unknown_topics(self) -> set[UUID]:
        """Those that the metadata lacks."""

    async def remove_deleted(self, noted: Collection[UUID]) -> None:
        """Deletes what is recorded about those whose deletion is noted."""


class Strays:
    """The stray folders of one broker."""

    def __init__(
        self,
        store: LogStore,
        maintenance: LogMaintenance,
        clock: Clock,
        noted: Callable[[], Awaitable[Collection[UUID]]],
        forget_offsets: Callable[[str, UUID], Awaitable[None]],
        *,
        recorded: RecordedTopics | None = None,
        read_again_ms: int = READ_AGAIN_MS,
    ) -> None:
        """`noted` reads the ids of deleted topics from the tree, and raises CoordinationError or
        StoreError; `forget_offsets` deletes the committed offsets of a deleted topic.
        `recorded` has what is recorded beside the groups. `read_again_ms` 0: one read is enough,
        because the tree is this broker's own.
        """
        self._store = store
        self._maintenance = maintenance
        self._clock = clock
        self._noted = noted
        self._forget_offsets = forget_offsets
        self._recorded = recorded
        self._read_again_ms = read_again_ms
        self._new: list[StrayFolder] = []
        """Set aside, and not settled yet."""
        self._vanished: list[TopicImage] = []
        """Topics that a newer image lacks, and that are not settled yet."""
        self._earlier_are_due = False
        self._due = asyncio.Event()
        self._background = Background(logger, "settling stray folders")

    def start(self) -> None:
        """Begins to settle what is set aside."""
        self._background.keep(self._run)

    async def close(self) -> None:
        """What is not settled yet stays; the next start settles it."""
        await self._background.close()

    def put_aside(self, topic: str, index: int, why: str) -> None:
        """Frees the name of a log that belongs to no partition here. Logs errors."""
        try:
            stray = self._store.put_aside(topic, index, why, self._clock.now_ms())
        except ApiError as error:
            logger.error("%s-%d: %s", topic, index, error)
            return
        self._maintenance.put_aside()
        if stray is not None:
            self._new.append(stray)
            self._due.set()

    def vanished(self, topic: TopicImage) -> None:
        """A newer image lacks the topic, and nothing says that it was deleted."""
        self._vanished.append(topic)
        self._due.set()

    def check_earlier(self) -> None:
        """Settles the strays of earlier runs, and says how much all strays hold."""
        self._earlier_are_due = True
        self._due.set()

    async def _run(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            await self._settle()

    async def _settle(self) -> None:
        new, self._new = self._new, []
        vanished, self._vanished = self._vanished, []
        is_start, self._earlier_are_due = self._earlier_are_due, False
        earlier = self._earlier() if is_start and self._store.strays else []
        ids = {each.topic_id for each in new} | {each.topic_id for each in vanished}
        recorded: set[UUID] = set()
        if is_start and self._recorded is not None:
            recorded = await self._recorded.unknown_topics()
        if ids or earlier or recorded:
            noted = await self._notes_of(ids | recorded)
            # Those without our note are not ours: who put them there decides.
            await self._delete(each for each in earlier if each.why and each.topic_id in noted)
            await self._delete(each for each in new if each.topic_id in noted)
            _name_kept([each for each in new if each.topic_id not in noted], self._store.root)
            await self._forget(vanished, noted)
            if self._recorded is not None and not recorded.isdisjoint(noted):
                await self._recorded.remove_deleted(noted)
        if is_start:
            await asyncio.to_thread(_say_total, self._store.root)

    def _earlier(self) -> list[StrayFolder]:
        """The strays that were there when the data folder was opened."""
        there = set(self._store.strays)
        return [each for each in stray_folders(self._store.root) if each.path in there]

    async def _notes_of(self, ids: Collection[UUID | None]) -> Collection[UUID]:
        """The noted deletions; read a second time if not all of `ids` are there."""
        noted = await self._read_notes()
        if self._read_again_ms and not set(ids) <= set(noted):
            await asyncio.sleep(self._read_again_ms / 1000)
            noted = await self._read_notes()
        return noted

    async def _read_notes(self) -> Collection[UUID]:
        try:
            return await self._noted()
        except (CoordinationError, StoreError) as error:
            logger.warning("cannot read which topics were deleted: %r", error)
            return ()

    async def _delete(self, deleted: Iterable[StrayFolder]) -> None:
        for number, stray in enumerate(deleted, start=1):
            if number % STRAYS_A_SLICE == 0:
                await asyncio.sleep(0)
            try:
                removal = self._store.delete_stray(stray)
            except ApiError as error:
                logger.error("%s-%d: %s", stray.topic, stray.partition, error)
                continue
            logger.info("%s-%d: its topic was deleted", stray.topic, stray.partition)
            self._maintenance.remove_later(removal)

    async def _forget(self, vanished: Sequence[TopicImage], noted: Collection[UUID]) -> None:
        kept = []
        for topic in vanished:
            if topic.topic_id in noted and topic.name != OFFSETS_TOPIC:
                await self._forget_offsets(topic.name, topic.topic_id)
            elif topic.topic_id not in noted:
                kept.append(topic.name)
        if kept:
            names = ", ".join(kept[:MAX_LINES]) + (" ..." if len(kept) > MAX_LINES else "")
            logger.warning(
                "the cluster's metadata no longer has %s, and no deletion is noted: the groups'"
                " offsets are kept", names,
            )  # fmt: skip


def _name_kept(kept: Sequence[StrayFolder], root: str) -> None:
    for stray in kept[:MAX_LINES]:
        logger.warning(
            "%s-%d is set aside: %s. Its records are kept in %s; to put them back or to delete"
            " them: ottla log stray list %s",
            stray.topic, stray.partition, stray.why or "its topic is unknown", stray.path, root,
        )  # fmt: skip
    if len(kept) > MAX_LINES:
        logger.warning(
            "%d more folders are set aside: ottla log stray list %s", len(kept) - MAX_LINES, root
        )


def _say_total(root: str) -> None:
    """Strays must not fill the disk in silence."""
    sizes = [folder_bytes(stray.path) for stray in stray_folders(root)]
    if sizes:
        logger.warning(
            "%d stray folder%s with %s bytes: ottla log stray list %s",
            len(sizes), "s"[len(sizes) == 1 :], f"{sum(sizes):,}", root,
        )  # fmt: skip


def was_moved_away(
    state: PartitionState, image: ClusterImage, broker_id: int, latest_epoch: int
) -> bool:
    """Whether the metadata proves that other brokers have this partition now.

    A reassignment ends when the new replicas are in sync. So there must be in-sync replicas that
    are not this one, on brokers that the cluster has seen; and the state must not be older than
    the folder, whose `latest_epoch` says in which leader epoch it was last written (-1: it has no
    record). In an older tree those replicas may be gone, and this the only copy.
    """
    return (
        broker_id not in state.replicas
        and any(each in image.directories for each in state.isr)
        and state.leader_epoch >= latest_epoch
    )


def why_unplaced(image: ClusterImage, topic: str, index: int, topic_id: UUID | None) -> str:
    """Why a log belongs to no partition of this broker, as the line and the note say it."""
    if topic_id is None:
        return "its partition.metadata is missing or damaged"
    found = image.topic_by_id(topic_id)
    if found is None:
        other = image.topics.get(topic)
        has = f"topic {topic} has {uuid_text(other.topic_id)}" if other else "no topic has it"
        return f"its topic id is {uuid_text(topic_id)}, {has}, and no deletion of it is noted"
    if index >= len(found.partitions):
        return f"topic {found.name} has only {len(found.partitions)} partitions"
    state = found.partitions[index]
    return (
        f"its replicas are {', '.join(map(str, state.replicas))} with leader epoch"
        f" {state.leader_epoch}, which does not prove that another broker has its records"
    )
