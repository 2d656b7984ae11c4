"""The description of a topic: the document that `--json` prints and the table is built from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import TopicCollection

from ottla.cli.client import Connection
from ottla.cli.configs import describe_configs
from ottla.cli.offsets import EARLIEST, LATEST, shown_offsets
from ottla.cli.plural import plural
from ottla.cli.screen import say, show_table

if TYPE_CHECKING:
    from ottla.cli.topic_metadata import Epoch

NO_TOPICS: Final = "No topics yet. Create one with: ottla topic create NAME"
COLUMNS: Final = (
    *("partition", "leader", "epoch", "replicas", "racks", "in sync"),
    *("start offset", "end offset", "state"),
)


def described_topics(connection: Connection, names: Sequence[str]) -> list[Any]:
    """librdkafka's descriptions (with topic ids), in the order of the names."""
    if not names:
        return []
    futures = connection.admin.describe_topics(
        TopicCollection(list(names)), request_timeout=connection.answer_timeout_s
    )
    return [connection.wait(futures[name], f"describe topic {name!r}") for name in names]


def topic_summary(topic: Any) -> dict[str, Any]:
    """The counts of one description."""
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "replication_factor": max((len(each.replicas) for each in topic.partitions), default=0),
    }


def topic_documents(connection: Connection, names: Sequence[str]) -> list[dict[str, Any]]:
    """One document per topic: id, partitions with offsets, and its own settings."""
    # Imported late: a list of topics needs no messages of Kafka's.
    from ottla.cli.topic_metadata import controller_is_away, epochs_in, metadata_of, topics_in

    metadata = metadata_of(connection, names)
    # librdkafka asks only the controller, whose state is the newest. Without one, ask any broker.
    alone = metadata is not None and controller_is_away(connection, metadata)
    if metadata is not None and alone:
        topics: list[Any] = topics_in(metadata, names)
    else:
        topics = described_topics(connection, names)
    # Without a leader there is no broker to ask.
    led = [
        (topic.name, each.id)
        for topic in topics
        for each in topic.partitions
        if leader_of(each) is not None
    ]
    (first, end), why = shown_offsets(connection, led, EARLIEST, LATEST)
    epochs = epochs_in(metadata)
    configs = describe_configs(connection, "topic", names, alone=alone)
    return [
        {
            "topic": topic.name,
            "id": str(topic.topic_id),
            "internal": topic.is_internal,
            "partitions": [
                partition_document(
                    each,
                    epochs.get(place),
                    first.get(place),
                    end.get(place),
                    why.get(place),
                )
                for each in topic.partitions
                for place in [(topic.name, each.id)]
            ],
            "config": {
                entry["name"]: entry["value"]
                for entry in configs[topic.name]
                if entry["source"] == "topic"
            },
        }
        for topic in topics
    ]


def leader_of(partition: Any) -> int | None:
    """The leader's id, or None."""
    leader = partition.leader
    return leader.id if leader is not None and leader.id >= 0 else None


def partition_document(
    partition: Any, epoch: Epoch | None, first: int | None, end: int | None, why: str | None
) -> dict[str, Any]:
    """One partition. `state` is ok, under_replicated (fewer in sync than replicas) or offline.

    `why`: the reason if its leader returned no offsets.
    """
    leader = leader_of(partition)
    replicas = [node.id for node in partition.replicas]
    in_sync = [node.id for node in partition.isr]
    state = "ok" if len(in_sync) >= len(replicas) else "under_replicated"
    return {
        "partition": partition.id,
        "leader": leader,
        "leader_epoch": epoch.leader_epoch if epoch else None,
        "replicas": replicas,
        "racks": [node.rack for node in partition.replicas],
        "in_sync": in_sync,
        "offline_replicas": list(epoch.offline) if epoch else None,
        "state": state if leader is not None else "offline",
        "start_offset": first if why is None else None,
        "end_offset": end,
        "offsets_error": why,
    }


def mark(document: dict[str, Any]) -> str:
    """The problems of a partition, for the table; empty if it has none."""
    words = {"ok": "", "under_replicated": "under-replicated", "offline": "OFFLINE"}
    said = [words[document["state"]]]
    if document["offline_replicas"]:
        said.append(f"down: {' '.join(map(str, document['offline_replicas']))}")
    if document["offsets_error"]:
        said.append(document["offsets_error"])
    return ", ".join(filter(None, said))


def show_topic(document: dict[str, Any]) -> None:
    """Print one topic."""
    partitions = document["partitions"]
    title = f"{document['topic']}: {plural(len(partitions), 'partition')}"
    show_table(
        COLUMNS,
        [
            [
                each["partition"],
                each["leader"],
                each["leader_epoch"],
                " ".join(map(str, each["replicas"])),
                " ".join(rack or "-" for rack in each["racks"]) if any(each["racks"]) else None,
                " ".join(map(str, each["in_sync"])),
                each["start_offset"],
                each["end_offset"],
                mark(each),
            ]
            for each in partitions
        ],
        title=title + troubles(partitions),
        drop_empty=("racks", "state"),
    )
    for name, value in document["config"].items():
        say(f"{name}={value}")


def troubles(partitions: Sequence[dict[str, Any]]) -> str:
    """The counts of problems for the title: `, 2 offline, 5 under-replicated`."""
    states = [each["state"] for each in partitions]
    counts = {
        "offline": states.count("offline"),
        "under-replicated": states.count("under_replicated"),
        "without offsets": sum(each["offsets_error"] is not None for each in partitions),
    }
    return "".join(f", {count:,} {word}" for word, count in counts.items() if count)
