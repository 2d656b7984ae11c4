"""The description of a topic: leaders, replicas, offsets, settings, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import TopicCollection

from ottla.cli.client import Connection
from ottla.cli.configs import describe_configs
from ottla.cli.offsets import EARLIEST, LATEST, shown_offsets
from ottla.cli.plural import plural
from ottla.cli.rows import column, only_json, row, show_rows
from ottla.cli.screen import say
from ottla.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from ottla.cli.topic.metadata import Epoch

NO_TOPICS: Final = "No topics yet. Create one with: ottla topic create NAME"
STATES: Final = {"ok": "", "under_replicated": "under-replicated", "offline": "OFFLINE"}


def numbers(name: str) -> Any:
    return lambda each: " ".join(map(str, getattr(each, name)))


def racks(each: PartitionDescription) -> str | None:
    return " ".join(rack or "-" for rack in each.racks) if any(each.racks) else None


def mark(each: PartitionDescription) -> str:
    """The problems of a partition, for the table; empty if it has none."""
    down = f"down: {' '.join(map(str, each.offline_replicas))}" if each.offline_replicas else ""
    return ", ".join(filter(None, (STATES[each.state], down, each.offsets_error)))


@row
class PartitionDescription:
    """One partition. `state` is ok, under_replicated (fewer in sync than replicas) or offline.

    `offsets_error`: the reason if its leader returned no offsets.
    """

    partition: int
    leader: int | None
    leader_epoch: int | None = column("epoch")
    replicas: list[int] = column(cell=numbers("replicas"))
    racks: list[str | None] = column(cell=racks, is_optional=True)
    in_sync: list[int] = column(cell=numbers("in_sync"))
    offline_replicas: list[int] | None = only_json()
    state: str = only_json()
    start_offset: int | None
    end_offset: int | None
    offsets_error: str | None = column("state", mark, is_optional=True)


@row
class TopicDescription:
    """A topic; `config` are its own settings."""

    topic: str
    id: str
    internal: bool
    partitions: Sequence[PartitionDescription]
    config: dict[str, str | None]

    def show(self) -> None:
        title = f"{self.topic}: {plural(len(self.partitions), 'partition')}"
        show_rows(
            self.partitions, title=title + troubles(self.partitions), like=PartitionDescription
        )
        for name, value in self.config.items():
            say(f"{name}={value}")


def described_topics(connection: Connection, names: Sequence[str]) -> list[Any]:
    """librdkafka's descriptions (with topic ids), in the order of the names."""
    if not names:
        return []
    futures = connection.admin.describe_topics(
        TopicCollection(list(names)), request_timeout=connection.answer_timeout_s
    )
    return [connection.wait(futures[name], f"describe topic {name!r}") for name in names]


def replication_factor_of(topic: Any) -> int:
    """Of one of librdkafka's descriptions."""
    return max((len(each.replicas) for each in topic.partitions), default=0)


def topic_descriptions(connection: Connection, names: Sequence[str]) -> list[TopicDescription]:
    """In the order of the names."""
    # Imported late: a list of topics needs no messages of Kafka's.
    from ottla.cli.topic.metadata import controller_is_away, epochs_in, metadata_of, topics_in

    metadata = metadata_of(connection, names)
    # librdkafka asks only the controller, whose state is the newest. Without one, ask any broker.
    alone = metadata is not None and controller_is_away(connection, metadata)
    if metadata is not None and alone:
        topics: list[Any] = topics_in(metadata, names)
    else:
        topics = described_topics(connection, names)
    # Without a leader there is no broker to ask.
    led = [
        TopicPartition(topic.name, each.id)
        for topic in topics
        for each in topic.partitions
        if leader_of(each) is not None
    ]
    (first, end), why = shown_offsets(connection, led, EARLIEST, LATEST)
    epochs = epochs_in(metadata)
    configs = describe_configs(connection, "topic", names, alone=alone)
    return [
        TopicDescription(
            topic.name,
            str(topic.topic_id),
            topic.is_internal,
            [
                described_partition(
                    each, epochs.get(place), first.get(place), end.get(place), why.get(place)
                )
                for each in topic.partitions
                for place in [TopicPartition(topic.name, each.id)]
            ],
            {entry.name: entry.value for entry in configs[topic.name] if entry.source == "topic"},
        )
        for topic in topics
    ]


def leader_of(partition: Any) -> int | None:
    """The leader's id, or None."""
    leader = partition.leader
    return leader.id if leader is not None and leader.id >= 0 else None


def described_partition(
    partition: Any, epoch: Epoch | None, first: int | None, end: int | None, why: str | None
) -> PartitionDescription:
    """`why`: the reason if its leader returned no offsets."""
    leader = leader_of(partition)
    is_short = len(partition.isr) < len(partition.replicas)
    state = "under_replicated" if is_short else "ok"
    return PartitionDescription(
        partition.id,
        leader,
        epoch.leader_epoch if epoch else None,
        [node.id for node in partition.replicas],
        [node.rack for node in partition.replicas],
        [node.id for node in partition.isr],
        list(epoch.offline) if epoch else None,
        "offline" if leader is None else state,
        first if why is None else None,
        end,
        why,
    )


def troubles(partitions: Sequence[PartitionDescription]) -> str:
    """The counts of problems for the title: `, 2 offline, 5 under-replicated`."""
    states = [each.state for each in partitions]
    counts = {
        "offline": states.count("offline"),
        "under-replicated": states.count("under_replicated"),
        "without offsets": sum(each.offsets_error is not None for each in partitions),
    }
    return "".join(f", {count:,} {word}" for word, count in counts.items() if count)
