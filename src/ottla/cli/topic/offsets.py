"""`ottla topic offsets`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import existing_topics, partitions_of
from ottla.cli.options import AS_JSON, topics_argument
from ottla.cli.rows import column, emit, row
from ottla.cli.value_types import Time
from ottla.client.admin.offsets import end_offsets, first_offsets, offsets_at


@row
class PartitionOffsets:
    """`offsets`: how many there are; records are fewer after compaction and with transactions."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    offsets: int
    offset_at: int | None = column("at", is_optional=True)


@command()
@topics_argument()
@click.option(
    "--at",
    "at_ms",
    type=Time(),
    help="Also show the first offset at or after a time or age: 2026-01-31T12:00, ms, 15m.",
)
@AS_JSON
@cluster_options
def offsets(cluster: Cluster, topics: Sequence[str], at_ms: int | None, as_json: bool) -> None:
    """Show the first and the next offset of each partition."""
    client = cluster.client
    chosen = partitions_of(existing_topics(client, list(dict.fromkeys(topics))), None)
    first, end = first_offsets(client, chosen), end_offsets(client, chosen)
    then = {} if at_ms is None else offsets_at(client, chosen, at_ms)
    rows = [
        PartitionOffsets(*key, first[key], end[key], end[key] - first[key], then.get(key))
        for key in chosen
    ]
    emit(rows, as_json=as_json)
