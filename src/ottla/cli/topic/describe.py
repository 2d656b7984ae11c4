"""`ottla topic describe`."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import NO_TOPICS, existing_topics
from ottla.cli.options import AS_JSON, topics_argument
from ottla.cli.rows import emit
from ottla.cli.topic.description import show_topic
from ottla.client.admin.topic_states import own_topics, topic_states


@command()
@topics_argument(required=False)
@AS_JSON
@cluster_options
def describe(cluster: Cluster, topics: Sequence[str], as_json: bool) -> None:
    """Show partitions with their leaders, replicas and offsets, and changed settings."""
    client = cluster.client
    names = list(dict.fromkeys(topics))
    found = existing_topics(client, names) if names else own_topics(client)
    states = topic_states(client, found)
    emit(states, as_json=as_json, none=NO_TOPICS, show_each=show_topic)
