"""`ottla topic describe`."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.client import is_internal
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.options import AS_JSON, topics_argument
from ottla.cli.rows import emit
from ottla.cli.topic.description import NO_TOPICS, topic_descriptions


@command()
@topics_argument(required=False)
@AS_JSON
@cluster_options
def describe(cluster: Cluster, topics: Sequence[str], as_json: bool) -> None:
    """Show partitions with their leaders, replicas and offsets, and changed settings."""
    connection = cluster.connection
    names = list(dict.fromkeys(topics))
    if names:
        connection.existing_topics(names)
    else:
        names = sorted(name for name in connection.topics() if not is_internal(name))
    emit(topic_descriptions(connection, names), as_json=as_json, none=NO_TOPICS)
