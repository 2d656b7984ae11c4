"""Topics as any broker knows them: leaders, replicas, offsets, settings, and what is wrong."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.client.admin.configs import settings_of
from ottla.client.admin.offsets import EARLIEST, LATEST, known_offsets
from ottla.client.admin.topics import is_internal
from ottla.client.client import Client
from ottla.client.metadata import Partition, Topic
from ottla.client.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class TopicPartitionState:
    """One partition. `state` is ok, under_replicated (fewer in sync than replicas) or offline.

    `offsets_error`: the reason if its leader returned no offsets.
    """

    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: list[int]
    racks: list[str | None]
    in_sync: list[int]
    offline_replicas: list[int]
    state: str
    start_offset: int | None
    end_offset: int | None
    offsets_error: str | None


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic; `config` are its own settings."""

    topic: str
    id: str
    internal: bool
    partitions: Sequence[TopicPartitionState]
    config: dict[str, str | None]


def own_topics(client: Client) -> dict[str, Topic]:
    """All topics but the internal ones, by name."""
    topics = client.metadata().topics
    return {name: topics[name] for name in sorted(topics) if not is_internal(name)}


def topic_states(client: Client, topics: Mapping[str, Topic]) -> list[TopicState]:
    """In the order of the topics."""
    led = [
        TopicPartition(name, index)
        for name, topic in topics.items()
        for index, each in topic.partitions.items()
        if each.leader >= 0  # there is no broker to ask for the others
    ]
    (first, end), why = known_offsets(client, led, EARLIEST, LATEST)
    settings = settings_of(client, "topic", list(topics))
    racks = {number: each.rack for number, each in client.metadata([]).brokers.items()}
    return [
        TopicState(
            name,
            # In librdkafka's format.
            b64encode(topic.id.bytes).rstrip(b"=").decode(),
            topic.is_internal,
            [
                partition_state(
                    index,
                    each,
                    racks,
                    first.get(TopicPartition(name, index)),
                    end.get(TopicPartition(name, index)),
                    why.get(TopicPartition(name, index)),
                )
                for index, each in topic.partitions.items()
            ],
            {each.name: each.value for each in settings[name] if each.source == "topic"},
        )
        for name, topic in topics.items()
    ]


def partition_state(
    index: int,
    partition: Partition,
    racks: Mapping[int, str | None],
    first: int | None,
    end: int | None,
    why: str | None,
) -> TopicPartitionState:
    """`racks`: of the live brokers. `why`: the reason if its leader returned no offsets."""
    is_short = len(partition.in_sync) < len(partition.replicas)
    state = "under_replicated" if is_short else "ok"
    return TopicPartitionState(
        index,
        partition.leader if partition.leader >= 0 else None,
        partition.leader_epoch if partition.leader_epoch >= 0 else None,
        list(partition.replicas),
        [racks.get(number) for number in partition.replicas],
        list(partition.in_sync),
        list(partition.offline),
        "offline" if partition.leader < 0 else state,
        first if why is None else None,
        end,
        why,
    )
