"""`ottla topic list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import NO_TOPICS
from ottla.cli.options import AS_JSON, FILTER, INTERNAL
from ottla.cli.rows import column, emit, only_json, row
from ottla.cli.screen import note
from ottla.client.admin.topics import is_internal, replication_factor_of
from ottla.client.security import ANONYMOUS
from ottla.messaging.patterns import name_filter

if TYPE_CHECKING:
    from ottla.client.metadata import Topic
    from ottla.wording.sizes import Size


@row
class Listed:
    """A topic."""

    topic: str
    partitions: int
    replication_factor: int = column("replicas")
    internal: bool = only_json()


@row
class Sized:
    """A topic with its size."""

    topic: str
    partitions: int
    replication_factor: int = column("replicas")
    offsets: int | None
    size_bytes: Size | None = column("size")
    internal: bool = only_json()


@command("list")
@FILTER
@click.option(
    "--sizes", is_flag=True, help="Show how many offsets and bytes each topic has (one replica)."
)
@INTERNAL
@AS_JSON
@cluster_options
def list_topics(
    cluster: Cluster, filter_: str | None, sizes: bool, internal: bool, as_json: bool
) -> None:
    """List topics by name."""
    matches = name_filter(filter_)
    topics = {
        name: topic
        for name, topic in sorted(cluster.client.metadata().topics.items())
        if (internal or not is_internal(name)) and matches(name)
    }
    none = no_topics(cluster) if filter_ is None else f"No topic's name matches {filter_}."
    emit(sized(cluster, topics) if sizes else listed(topics), as_json=as_json, none=none)


def no_topics(cluster: Cluster) -> str:
    """A list leaves out what the client may not describe: who is known by name may lack an ACL."""
    principal = cluster.client.principal
    if principal in (None, ANONYMOUS):
        return NO_TOPICS
    return f"No topics yet, or none that {principal} may describe."


def listed(topics: dict[str, Topic]) -> list[Listed]:
    return [
        Listed(name, len(topic.partitions), replication_factor_of(topic), is_internal(name))
        for name, topic in topics.items()
    ]


def sized(cluster: Cluster, topics: dict[str, Topic]) -> list[Sized]:
    # Imported late: most lists need no sizes.
    from ottla.client.admin.topic_sizes import topic_sizes
    from ottla.wording.sizes import shown_size

    found, silent = topic_sizes(cluster.client, topics)
    for number, reason in silent.items():
        note(f"broker {number}: {reason}.")
    return [
        Sized(
            name,
            len(topic.partitions),
            replication_factor_of(topic),
            found[name].offsets,
            shown_size(found[name].size_bytes),
            internal=is_internal(name),
        )
        for name, topic in topics.items()
    ]
