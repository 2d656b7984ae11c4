"""`ottla topic segments`."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import existing_topics, partitions_of
from ottla.cli.options import AS_JSON, OF_PARTITION, topic_argument
from ottla.cli.rows import column, emit, row
from ottla.cli.screen import note
from ottla.client.admin.segments import segments_of
from ottla.messaging.rendering import ms_text
from ottla.wording.sizes import shown_size


@row
class SegmentRow:
    """A segment on the partition's leader. `removed_ms`: the time after which retention removes it
    for its age; `missing_bytes`: how much the log must grow until it is removed for the log's size.
    """

    partition: int
    base_offset: int
    next_offset: int
    size_bytes: int = column("size", lambda each: shown_size(each.size_bytes))
    largest_ms: int | None = column("newest record", lambda each: ms_text(each.largest_ms))
    removed_ms: int | None = column("removed after", lambda each: ms_text(each.removed_ms))
    missing_bytes: int | None = column(
        "or when larger by", lambda each: shown_size(each.missing_bytes), is_optional=True
    )
    is_active: bool = column("", lambda each: "active" if each.is_active else "")


@command()
@topic_argument()
@OF_PARTITION
@AS_JSON
@cluster_options
def segments(cluster: Cluster, topic: str, partition: Sequence[int], as_json: bool) -> None:
    """Show the segments of each partition, and when retention removes them (Ottla's brokers)."""
    client = cluster.client
    rows: list[SegmentRow] = []
    unlisted: dict[str, int] = {}
    for where in partitions_of(existing_topics(client, [topic]), partition):
        found = segments_of(client, where)
        if found.count > len(found.listed):
            unlisted[str(where)] = found.count - len(found.listed)
        rows += [SegmentRow(where.partition, *each) for each in found.listed]
    emit(rows, as_json=as_json)
    for name, number in unlisted.items():
        note(f"{number} more segments of {name} are between the last two.")
