"""What one broker keeps about the groups of a partition, and how it tells another broker.

A group's coordinator knows its position and when it committed; only there are the steps of its
timeline recorded. The request between brokers (key 20002, JSON):

    request   {"journey_groups": 1, "topic": "flights", "partition": 2, "offset": 1234}
    response  {"journey_groups": 1, "shards": [3, 7],
               "positions": [["readers", 1300, 4, "", 1795259617608]],
               "left_out": 0, "steps": "base64 of a timeline file",
               "share_groups": ["workers"]}

`shards` are the partitions of `__consumer_offsets` for which it answers. A position is the group,
its offset, leader epoch and metadata, and when it was committed. `steps` are those of the groups
that say something about the offset, also of groups that another broker coordinates by now.
`share_groups` are those with state of the partition; older brokers do not tell them.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import chain
from typing import Final, NamedTuple, Protocol

from ottla.config import BrokerConfig
from ottla.controller.image import ClusterImage
from ottla.coordinator.group_coordinator import GroupCoordinator
from ottla.groups.stored import OffsetCommitValue
from ottla.journey.facts import Position
from ottla.journey.group_steps import about
from ottla.journey.moment import Document
from ottla.protocol.errors import ApiError
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.replica.partitions import Partitions
from ottla.timelines.delivery_metadata import is_note, read_delivery
from ottla.timelines.file_format import HEAD, decode, encode
from ottla.timelines.recorder import TimelineRecorder
from ottla.timelines.step import Step

VERSION: Final = 1
MAX_GROUPS: Final = 1_000
"""Groups with a position in one partition that one broker tells; the others are counted."""
MAX_ANSWER_CHARS: Final = 2 << 20
"""Names and metadata of an answer: it is parsed on the event loop, in at most 10 ms."""
MAX_SHARE_GROUPS: Final = 100
"""That one broker tells."""
SHARDS_WITHIN_MS: Final = 600
"""For what is being loaded or committed; less than the other broker waits."""


class GroupsOfPartition(NamedTuple):
    """What one broker keeps about a partition's groups."""

    shards: frozenset[int]
    positions: dict[str, Position]
    left_out: int
    steps: Sequence[Step]
    share_groups: Sequence[str] = ()


class Coordinator(Protocol):
    """The parts of a broker that know its groups."""

    config: BrokerConfig
    groups: GroupCoordinator
    partitions: Partitions
    timelines: TimelineRecorder

    @property
    def image(self) -> ClusterImage:
        """The metadata image; it may be another one after each wait."""


async def own_groups(
    topic: str, partition: int, offset: int, broker: Coordinator, *, with_replica: bool = True
) -> GroupsOfPartition:
    """What this broker keeps; `with_replica`: also what is recorded beside its replica."""
    # First the steps: what they lack, the positions have.
    steps = await _steps(topic, partition, offset, broker, with_replica=with_replica)
    by_shard = await broker.groups.offsets_of(topic, partition, SHARDS_WITHIN_MS)
    told, left_out = await asyncio.to_thread(_told, list(by_shard.values()))
    positions = {
        group: Position(
            value.offset,
            _metadata_told(value.metadata),
            value.leader_epoch,
            value.commit_timestamp_ms,
            broker.config.id,
        )
        for group, value in told
    }
    shared = await _share_groups(topic, partition, broker)
    return GroupsOfPartition(frozenset(by_shard), positions, left_out, steps, shared)


async def _share_groups(topic: str, partition: int, broker: Coordinator) -> Sequence[str]:
    """Those that this broker coordinates; none while it is loading them."""
    known = broker.image.topic(topic)
    if known is None:
        return ()
    try:
        async with asyncio.timeout(SHARDS_WITHIN_MS / 1000):
            found = await broker.groups.share_groups_of(known.topic_id, partition)
    except (ApiError, TimeoutError):
        return ()
    return found[:MAX_SHARE_GROUPS]


async def _steps(
    topic: str, partition: int, offset: int, broker: Coordinator, *, with_replica: bool
) -> Sequence[Step]:
    """What is recorded beside this broker's replica, and beside those of `__consumer_offsets`."""
    steps: list[Step] = []
    replica, known = broker.partitions.get(topic, partition), broker.image.topic(topic)
    if replica is not None and with_replica:
        history = await broker.timelines.history(replica.timeline, offset)
        steps += history.steps if history else ()
    if known is not None:
        logs = [each.log for each in broker.partitions.of_topic(OFFSETS_TOPIC)]
        steps += await broker.timelines.history_of_groups(logs, known.topic_id, partition)
    return await asyncio.to_thread(about, steps, offset) if steps else ()


def _told(
    by_shard: Sequence[dict[str, OffsetCommitValue]],
) -> tuple[list[tuple[str, OffsetCommitValue]], int]:
    """Those that are told, if they are too many those that committed last; and how many are not."""
    every = chain.from_iterable(found.items() for found in by_shard)
    some = nlargest(MAX_GROUPS, every, key=lambda item: item[1].commit_timestamp_ms)
    room, told = MAX_ANSWER_CHARS, []
    for group, value in some:
        room -= len(group) + len(value.metadata)
        if room < 0:
            break
        told.append((group, value))
    return told, sum(map(len, by_shard)) - len(told)


def _metadata_told(metadata: str) -> str:
    """Only what a pipeline reports is read."""
    return metadata if read_delivery(metadata) is not None or is_note(metadata) else ""


def answer_document(known: GroupsOfPartition) -> Document:
    """The response to another broker."""
    return {
        "journey_groups": VERSION,
        "shards": sorted(known.shards),
        "positions": [
            [group, each.offset, each.leader_epoch, each.metadata, each.committed_ms]
            for group, each in known.positions.items()
        ],
        "left_out": known.left_out,
        "steps": base64.b64encode(HEAD + encode(known.steps)).decode(),
        "share_groups": list(known.share_groups),
    }


def read_answer(document: Document, broker_id: int) -> GroupsOfPartition:
    """What the broker told. Raises ValueError for anything else."""
    if document.get("journey_groups") != VERSION:
        raise ValueError(f"broker {broker_id} speaks another version")
    try:
        positions = {
            str(group): Position(int(offset), str(metadata), int(epoch), committed_ms, broker_id)
            for group, offset, epoch, metadata, committed_ms in document["positions"]
        }
        shards = frozenset(map(int, document["shards"]))
        told = decode(base64.b64decode(document["steps"], validate=True))
        steps = [step._replace(broker=broker_id) for step in told]
        shared = tuple(map(str, document.get("share_groups", ())))
        return GroupsOfPartition(shards, positions, int(document["left_out"]), steps, shared)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"broker {broker_id} gave another answer: {error}") from None


def joined_steps(answers: Iterable[GroupsOfPartition]) -> tuple[Step, ...]:
    """The steps of all brokers; each once, as a broker asks itself, too."""
    return tuple(dict.fromkeys(chain.from_iterable(each.steps for each in answers)))
