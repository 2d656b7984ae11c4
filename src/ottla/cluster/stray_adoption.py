"""Puts a stray folder back as its partition's log, while its broker is stopped.

Where the topic exists, the partition must be this broker's alone (no other replica is in sync), and
must not have records: a leader with records would make a follower truncate these, and a folder
cannot have two logs. Where the tree has lost the topic, it is created with the folder's topic id;
only in the tree of a single broker, because in a cluster other brokers may have strays of it, too.

The partition gets a leader epoch above all of the log's, as after an unclean election, so that
consumers notice. Its entries in the checkpoint files go, except the log's start, and so does the
mark of a clean stop: the next start recovers it as after a crash.

Order of the writes, and a crash between them: the folder's topic id, the tree, the checkpoint
files, the folder's name. Until the last one the folder is a stray; adopt it again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

from ottla.controller import layout
from ottla.controller.image import PartitionState
from ottla.controller.layout import Assignment
from ottla.controller.naming import check_topic_name
from ottla.coordination.tree import Coordination, Create, Delete, Operation, SetData, TreeNode
from ottla.log import names
from ottla.log.checkpoint import parse_offsets, write_offsets
from ottla.log.partition_metadata import make_folder
from ottla.protocol.kafka_uuid import random_uuid, uuid_text
from ottla.storage.checkpoint_files import ALL_FILES, LOG_STARTS
from ottla.storage.clean_stop import remove_clean_stop
from ottla.storage.stray_folder import NOTE, StoredLog, StrayFolder

MAX_PARTITIONS: Final = 10_000
"""Of a topic that is created for its strays."""


class AdoptionRefusedError(Exception):
    """The folder cannot become the partition's log; the text says why. `hint`: what to do."""

    def __init__(self, why: str, hint: str | None = None) -> None:
        super().__init__(why)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Adopted:
    """What was done. `made_partitions` is None if the topic was there."""

    topic: str
    partition: int
    made_partitions: int | None


async def adopt(
    session: Coordination,
    root: str,
    node_id: int,
    stray: StrayFolder,
    stored: StoredLog,
    *,
    may_create: Sequence[StrayFolder] | None,
    partitions: int | None,
    random: Random,
) -> Adopted:
    """Puts the folder back; the caller holds the data folder's lock. `may_create`: the strays of
    the data folder, if the tree is this broker's own; with `partitions` a topic that is created
    has so many.

    Raises AdoptionRefusedError, LayoutError, CoordinationError, StoreError, ApiError, ValueError.
    """
    target = f"{root}/{names.folder_name(stray.topic, stray.partition)}"
    if _has_records(target):
        raise AdoptionRefusedError(
            f"{target} has records, which the stray folder's would overwrite",
            f"To keep the stray folder's records instead, move {target} away first.",
        )
    node = await session.exists(layout.topic_path(stray.topic))
    epoch = stored.latest_epoch + 1
    made: int | None = None
    if node is not None:
        topic_id, writes = await _into_topic(session, node_id, stray, node, epoch)
    elif may_create is not None:
        topic_id = stray.topic_id or random_uuid(random)
        made = _partition_count(stray, may_create, partitions)
        writes = await _topic_writes(session, node_id, stray, topic_id, made, epoch)
    else:
        raise AdoptionRefusedError(
            f"the cluster has no topic {stray.topic}",
            f"Create it with one replica, on broker {node_id}: ottla topic create",
        )
    make_folder(stray.path, topic_id, sync=True)
    await session.multi(writes)
    _update_checkpoints(root, stray)
    _replace(stray.path, target)
    return Adopted(stray.topic, stray.partition, made)


def _has_records(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(each.name.endswith(names.LOG) and each.stat().st_size for each in entries)
    except FileNotFoundError:
        return False


async def _into_topic(
    session: Coordination, node_id: int, stray: StrayFolder, node: TreeNode, epoch: int
) -> tuple[UUID, list[Operation]]:
    topic_id, assignments = layout.read_topic(stray.topic, node.data)
    name = names.folder_name(stray.topic, stray.partition)
    if stray.partition >= len(assignments):
        raise AdoptionRefusedError(
            f"topic {stray.topic} has only {len(assignments)} partitions",
            f"Start the broker, then: ottla topic alter {stray.topic}"
            f" --partitions {stray.partition + 1}",
        )
    assignment = assignments[stray.partition]
    path = layout.state_path(stray.topic, stray.partition)
    there = await session.get(path)
    state = layout.read_state(path, there.data, there.version, assignment)
    if node_id not in state.replicas or set(state.isr) - {node_id}:
        raise AdoptionRefusedError(
            f"{name} is on other brokers (replicas {_listed(state.replicas)}, in sync"
            f" {_listed(state.isr)}), from which broker {node_id} would copy it",
            f"To read the stray folder's records: ottla log batches {stray.path}",
        )
    if topic_id != stray.topic_id and len(state.replicas) > 1:
        has = "unknown" if stray.topic_id is None else uuid_text(stray.topic_id)
        raise AdoptionRefusedError(
            f"the folder's topic id is {has}, topic {stray.topic} has {uuid_text(topic_id)}, and"
            " other replicas may have other records"
        )
    state = state._replace(
        leader=node_id, leader_epoch=max(epoch, state.leader_epoch + 1), isr=(node_id,)
    )
    controller_epoch = int((await session.get(layout.CONTROLLER_EPOCH)).data)
    content = layout.write_state(state, controller_epoch)
    return topic_id, [SetData(path, content, there.version)]


def _listed(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"


def _partition_count(
    stray: StrayFolder, strays: Sequence[StrayFolder], partitions: int | None
) -> int:
    """As many as asked for, or as the folders of this topic show."""
    own = (each.partition for each in strays if _are_of_one_topic(each, stray))
    least = max(own, default=stray.partition) + 1
    if partitions is not None and partitions < least:
        raise AdoptionRefusedError(
            f"topic {stray.topic} has at least {least} partitions, as its folders show"
        )
    if (partitions or least) > MAX_PARTITIONS:
        raise AdoptionRefusedError(f"a topic may have up to {MAX_PARTITIONS} partitions here")
    return partitions or least


def _are_of_one_topic(one: StrayFolder, other: StrayFolder) -> bool:
    return (one.topic, one.topic_id) == (other.topic, other.topic_id)


async def _topic_writes(
    session: Coordination,
    node_id: int,
    stray: StrayFolder,
    topic_id: UUID,
    partitions: int,
    epoch: int,
) -> list[Operation]:
    """The writes that create the topic, as `controller.topics` does."""
    topic = stray.topic
    check_topic_name(topic)
    controller_epoch = int((await session.get(layout.CONTROLLER_EPOCH)).data)
    writes: list[Operation] = []
    if await session.exists(layout.deletion_path(topic_id)) is not None:
        writes.append(Delete(layout.deletion_path(topic_id)))
    if await session.exists(layout.topic_config_path(topic)) is None:
        writes.append(Create(layout.topic_config_path(topic), layout.write_config({})))
    assignments = [Assignment((node_id,))] * partitions
    writes.append(Create(layout.topic_path(topic), layout.write_topic(topic_id, assignments)))
    writes.append(Create(layout.partitions_path(topic)))
    for index in range(partitions):
        state = PartitionState(
            leader=node_id,
            leader_epoch=epoch if index == stray.partition else 0,
            replicas=(node_id,),
            isr=(node_id,),
            partition_epoch=0,
        )
        writes.append(Create(layout.partition_path(topic, index)))
        content = layout.write_state(state, controller_epoch)
        writes.append(Create(layout.state_path(topic, index), content))
    return writes


def _update_checkpoints(root: str, stray: StrayFolder) -> None:
    """Raises ValueError if a file is damaged, and ApiError."""
    name = (stray.topic, stray.partition)
    # It has the checksums of the checkpoint files, and the sizes of the logs.
    remove_clean_stop(root)
    for file in ALL_FILES:
        path = Path(f"{root}/{file}")
        offsets = parse_offsets(path.read_bytes(), file).by_partition if path.exists() else {}
        before = offsets.pop(name, None)
        if file == LOG_STARTS and stray.log_start_offset:
            offsets[name] = stray.log_start_offset
        if offsets.get(name) != before:
            write_offsets(str(path), offsets)


def _replace(folder: str, target: str) -> None:
    """Raises OSError. What is in the way has no record."""
    if os.path.isdir(target):
        for name in os.listdir(target):
            os.unlink(f"{target}/{name}")
        os.rmdir(target)
    with suppress(FileNotFoundError):
        os.unlink(f"{folder}/{NOTE}")
    os.rename(folder, target)
    fd = os.open(os.path.dirname(target), os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
