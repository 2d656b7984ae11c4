"""`ottla group export`: a group's offsets, to be imported into another group or cluster."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.group.description import committed_offsets, existing_groups
from ottla.cli.group.moves import choose_partitions
from ottla.cli.group.offsets_file import offsets_text
from ottla.cli.options import AS_JSON, GROUP_TOPICS, group_argument
from ottla.cli.rows import emit, row
from ottla.cli.screen import write


@row
class CommittedOffset:
    topic: str
    partition: int
    offset: int


@command()
@group_argument()
@GROUP_TOPICS
@AS_JSON
@cluster_options
def export(cluster: Cluster, group: str, topic: Sequence[str], as_json: bool) -> None:
    """Print a group's committed offsets, for `ottla group import` or Kafka's own script."""
    connection = cluster.connection
    existing_groups(connection, [group])
    committed = committed_offsets(connection, group)
    if topic:
        chosen = choose_partitions(connection, group, topic, committed)
        committed = {key: committed[key] for key in chosen if key in committed}
    if as_json:
        emit([CommittedOffset(*key, at) for key, at in sorted(committed.items())], as_json=True)
    else:
        write(offsets_text(committed))
