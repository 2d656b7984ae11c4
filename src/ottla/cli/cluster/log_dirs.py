"""`ottla cluster log-dirs`: what each broker stores, by folder and by topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from ottla.cli.command import command
from ottla.cli.complete import complete_broker
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import check_brokers, existing_topics
from ottla.cli.failures import EXIT_FAILED
from ottla.cli.options import AS_JSON, topics_argument
from ottla.cli.rows import column, document, only_json, row, show_rows
from ottla.cli.screen import note, say, show_json
from ottla.cli.value_types import MAX_INT32, WholeNumber
from ottla.client.admin.log_dirs import LogDir, log_dirs
from ottla.client.admin.stored_replicas import replicas_of
from ottla.wording.sizes import Size, shown_size


@command("log-dirs")
@topics_argument(required=False)
@click.option(
    "--broker",
    type=WholeNumber(0, MAX_INT32),
    multiple=True,
    shell_complete=complete_broker,
    help="Only this broker. Repeatable.",
)
@AS_JSON
@cluster_options
def describe_log_dirs(
    cluster: Cluster, topics: Sequence[str], broker: Sequence[int], as_json: bool
) -> int:
    """Show how much each broker stores, by folder and topic, or by replica of the topics."""
    client = cluster.client
    check_brokers(broker, client.metadata([]).brokers)
    partitions = None
    if topics:
        found = existing_topics(client, topics)
        partitions = {name: sorted(topic.partitions) for name, topic in found.items()}
    folders, why = log_dirs(client, brokers=list(broker) or None, partitions=partitions)
    if as_json:
        show_json(document([folder_row(each) for each in folders]))
    elif topics:
        show_replicas(folders)
    else:
        show_rows([folder_row(each) for each in folders], like=Folder)
        say("")
        show_topics(folders)
    for number, reason in why.items():
        note(f"broker {number}: {reason}.")
    return EXIT_FAILED if why else 0


@row
class Folder:
    """A broker's log directory. The brokers know the size of the disk, which others use too."""

    broker: int
    replica_count: int = column("replicas", in_json=False)
    log_dir: str = only_json()
    error: str | None = only_json()
    size_bytes: Size = column("size")
    total_bytes: Size | None = column("disk")
    usable_bytes: Size | None = column("free")
    replicas: list[Any] = only_json()
    folder: str = column(in_json=False)
    state: str = column(is_optional=True, in_json=False)


@row
class StoredTopic:
    """What all brokers store of a topic."""

    topic: str
    replicas: int
    size: Size


@row
class Replica:
    """A replica, with the broker that stores it."""

    topic: str
    partition: int
    broker: int
    size: Size
    offset_lag: int
    state: str = column(is_optional=True)


def folder_row(folder: LogDir) -> Folder:
    return Folder(
        folder.broker,
        len(folder.replicas),
        folder.path,
        folder.error,
        Size(folder.size_bytes),
        shown_size(folder.total_bytes),
        shown_size(folder.usable_bytes),
        [each._asdict() for each in folder.replicas],
        folder.path,
        folder.error or "",
    )


def show_topics(folders: Sequence[LogDir]) -> None:
    """One row per topic, the largest first."""
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for _, each in replicas_of(folders):
        sizes[each.topic] += each.size_bytes
        counts[each.topic] += 1
    rows = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    show_rows(
        [StoredTopic(topic, counts[topic], Size(size)) for topic, size in rows], like=StoredTopic
    )


def show_replicas(folders: Sequence[LogDir]) -> None:
    """One row per replica."""
    rows = [
        Replica(
            each.topic,
            each.partition,
            folder.broker,
            Size(each.size_bytes),
            each.offset_lag,
            f"copied to {folder.path}" if each.is_future else "",
        )
        for folder, each in replicas_of(folders)
    ]
    show_rows(rows, like=Replica)
