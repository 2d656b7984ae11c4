"""`ottla group export`: a group's offsets, to be imported into another group or cluster."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.group.existing import existing_groups
from ottla.cli.group.moves import choose_partitions, offsets_of
from ottla.cli.options import AS_JSON, GROUP_TOPICS, group_argument
from ottla.cli.rows import emit, row
from ottla.cli.screen import write
from ottla.client.admin.offsets_file import offsets_text


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
    client = cluster.client
    found = existing_groups(client, [group])[group]
    committed = {key: each.offset for key, each in offsets_of(client, group, found).items()}
    if topic:
        chosen = choose_partitions(client, group, topic, committed)
        committed = {key: committed[key] for key in chosen if key in committed}
    if as_json:
        emit([CommittedOffset(*key, at) for key, at in sorted(committed.items())], as_json=True)
    else:
        write(offsets_text(committed))
