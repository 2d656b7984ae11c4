"""`ottla cluster log-dirs`: what each broker stores, by folder and by topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from ottla.cli.client import connect
from ottla.cli.complete import complete_broker
from ottla.cli.failures import EXIT_FAILED, unknown
from ottla.cli.screen import note, say, show_json, show_table
from ottla.cli.sizes import Size, shown_size
from ottla.cli.typer_options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    ClientConfig,
    SomeTopicNames,
)
from ottla.client.admin.log_dirs import LogDir, StoredReplica, log_dirs
from ottla.client.topic_partition import TopicPartition

OfBroker = Annotated[
    list[int] | None,
    typer.Option(
        "--broker",
        min=0,
        metavar="N",
        help="Only this broker. Repeatable.",
        autocompletion=complete_broker,
    ),
]


def describe_log_dirs(
    topics: SomeTopicNames = None,
    broker: OfBroker = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Show how much each broker stores, by folder and topic, or by replica of the topics."""
    connection = connect(bootstrap, client_config)
    live = connection.metadata().brokers
    for number in broker or ():
        if number not in live:
            raise unknown(
                "live broker",
                str(number),
                map(str, live),
                "To list all brokers: ottla cluster describe",
            )
    partitions = None
    if topics:
        found = connection.existing_topics(topics)
        partitions = {name: sorted(topic.partitions) for name, topic in found.items()}
    folders, why = log_dirs(connection.client, brokers=broker or None, partitions=partitions)
    if as_json:
        show_json([folder_document(each) for each in folders])
    elif topics:
        show_replicas(folders)
    else:
        show_folders(folders)
        say("")
        show_topics(folders)
    for number, reason in why.items():
        note(f"broker {number}: {reason}.")
    if why:
        raise typer.Exit(EXIT_FAILED)


def folder_document(folder: LogDir) -> dict[str, Any]:
    return {
        "broker": folder.broker,
        "log_dir": folder.path,
        "error": folder.error,
        "size_bytes": folder.size_bytes,
        "total_bytes": folder.total_bytes,
        "usable_bytes": folder.usable_bytes,
        "replicas": [each._asdict() for each in folder.replicas],
    }


def show_folders(folders: Sequence[LogDir]) -> None:
    """One row per folder. The brokers know the size of the disk, which others use too."""
    show_table(
        ["broker", "replicas", "size", "disk", "free", "folder", "state"],
        [
            [
                each.broker,
                len(each.replicas),
                Size(each.size_bytes),
                shown_size(each.total_bytes),
                shown_size(each.usable_bytes),
                each.path,
                each.error or "",
            ]
            for each in folders
        ],
        drop_empty=("state",),
    )


def show_topics(folders: Sequence[LogDir]) -> None:
    """One row per topic, the largest first."""
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for _, each in replicas_of(folders):
        sizes[each.topic] += each.size_bytes
        counts[each.topic] += 1
    rows = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    show_table(
        ["topic", "replicas", "size"], [[topic, counts[topic], Size(size)] for topic, size in rows]
    )


def show_replicas(folders: Sequence[LogDir]) -> None:
    """One row per replica."""
    show_table(
        ["topic", "partition", "broker", "size", "offset lag", "state"],
        [
            [
                each.topic,
                each.partition,
                folder.broker,
                Size(each.size_bytes),
                each.offset_lag,
                f"copied to {folder.path}" if each.is_future else "",
            ]
            for folder, each in replicas_of(folders)
        ],
        drop_empty=("state",),
    )


def replicas_of(folders: Sequence[LogDir]) -> list[tuple[LogDir, StoredReplica]]:
    """Each replica with its folder, by topic, partition and broker."""
    found = [(folder, each) for folder in folders for each in folder.replicas]
    return sorted(found, key=lambda pair: (pair[1].topic, pair[1].partition, pair[0].broker))


def leader_sizes(folders: Sequence[LogDir], leaders: Mapping[TopicPartition, int]) -> Counter[str]:
    """The bytes of each topic, counting each partition once: as its leader stores it."""
    sizes: Counter[str] = Counter()
    for folder, each in replicas_of(folders):
        key = TopicPartition(each.topic, each.partition)
        if not each.is_future and leaders.get(key) == folder.broker:
            sizes[each.topic] += each.size_bytes
    return sizes
