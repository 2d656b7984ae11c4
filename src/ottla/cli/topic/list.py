"""`ottla topic list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.client import is_internal
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.options import AS_JSON, FILTER, INTERNAL
from ottla.cli.patterns import name_filter
from ottla.cli.rows import column, emit, only_json, row
from ottla.cli.topic.description import NO_TOPICS

if TYPE_CHECKING:
    from ottla.cli.sizes import Size


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
        for name, topic in sorted(cluster.connection.topics().items())
        if (internal or not is_internal(name)) and matches(name)
    }
    none = NO_TOPICS if filter_ is None else f"No topic's name matches {filter_}."
    emit(sized(cluster, topics) if sizes else listed(topics), as_json=as_json, none=none)


def listed(topics: dict[str, Any]) -> list[Listed]:
    return [
        Listed(name, len(topic.partitions), replicas_of(topic), is_internal(name))
        for name, topic in topics.items()
    ]


def sized(cluster: Cluster, topics: dict[str, Any]) -> list[Sized]:
    # Imported late: it needs messages of Kafka's.
    from ottla.cli.topic.sizes import topic_sizes

    found = topic_sizes(cluster.connection, topics) if topics else {}
    return [
        Sized(
            name,
            len(topic.partitions),
            replicas_of(topic),
            *found[name],
            internal=is_internal(name),
        )
        for name, topic in topics.items()
    ]


def replicas_of(topic: Any) -> int:
    return max((len(each.replicas) for each in topic.partitions.values()), default=0)
