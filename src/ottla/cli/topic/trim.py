"""`ottla topic trim`: deletes the oldest records of a topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from ottla.cli.command import command
from ottla.cli.confirmation import confirm
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import existing_topics, partitions_of
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.options import AS_JSON, DRY_RUN, OF_PARTITION, YES, topic_argument
from ottla.cli.rows import column, emit, row, show_rows
from ottla.cli.screen import note, say
from ottla.cli.value_types import Time, WholeNumber
from ottla.client.admin.offsets import end_offsets, first_offsets, offsets_at
from ottla.client.admin.records import delete_records
from ottla.client.admin.topics import is_internal
from ottla.client.topic_partition import TopicPartition

FORMS: Final = "For example: --before 7d, --before 2026-01-31T12:00, --before-offset 42"


@row
class Start:
    """The start of a partition."""

    topic: str
    partition: int
    before: int = column("start offset")
    after: int | None = column("new start offset")


@row
class Trimmed:
    """What was deleted, or with --dry-run would be."""

    topic: str = column(in_json=False)
    applied: bool
    partitions: Sequence[Start]

    def show(self) -> None:
        if not self.partitions:
            say(f"Nothing to delete: no partition of {self.topic} begins before that.")
            return
        show_rows(self.partitions)
        if not self.applied:
            note("Nothing was deleted (--dry-run).")


class TimeOrEnd(Time):
    """A time, or -1 for the end."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        is_end = isinstance(value, str) and value.lower() == "end"
        return -1 if is_end else super().convert(value, param, ctx)


@command()
@topic_argument()
@click.option(
    "--before",
    "before_ms",
    type=TimeOrEnd(),
    help="Delete what comes before this time or age, or `end`.",
)
@click.option("--before-offset", type=WholeNumber(0), help="Delete what is before this offset.")
@OF_PARTITION
@DRY_RUN
@YES
@AS_JSON
@cluster_options
def trim(
    cluster: Cluster,
    topic: str,
    before_ms: int | None,
    before_offset: int | None,
    partition: Sequence[int],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete the oldest records of a topic (KIP-107). Asks first, unless --yes."""
    check_target(topic, before_ms, before_offset, partition)
    client = cluster.client
    chosen = partitions_of(existing_topics(client, [topic]), partition)
    first, end = first_offsets(client, chosen), end_offsets(client, chosen)
    if before_offset is not None:
        wanted = dict.fromkeys(chosen, before_offset)
    elif before_ms is not None and before_ms >= 0:
        wanted = offsets_at(client, chosen, before_ms)
    else:
        wanted = end
    targets = planned(wanted, first, end)
    gone = sum(target - first[key] for key, target in targets.items())
    confirm(
        f"Delete {gone:,} offsets of {topic}?",
        yes=yes or dry_run or not targets,
        refused="Nothing was deleted.",
    )
    after = targets if dry_run else delete_records(client, targets)
    starts = [Start(*key, first[key], after.get(key)) for key in targets]
    emit(Trimmed(topic, not dry_run, starts), as_json=as_json)


def check_target(
    topic: str, before_ms: int | None, before_offset: int | None, partition: Sequence[int]
) -> None:
    """Raises UsageFailed for a target that is not clear."""
    if is_internal(topic):
        raise UsageFailed(f"{topic} is an internal topic, which only its coordinators may change.")
    if (before_ms is None) == (before_offset is None):
        raise UsageFailed("give either --before or --before-offset.", FORMS)
    if before_offset is not None and len(partition) != 1:
        raise UsageFailed(
            "--before-offset needs --partition: offsets belong to one partition.",
            f"For example: ottla topic trim {topic} --partition 0 --before-offset {before_offset}",
        )


def planned(
    wanted: Mapping[TopicPartition, int],
    first: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """The new start of each partition that changes. Raises Failed for an offset past the end."""
    for key, target in wanted.items():
        if target > end[key]:
            raise Failed(
                f"partition {key.partition} of {key.topic!r} has no offset {target}: allowed are "
                f"{first[key]} to {end[key]}, the end."
            )
    return {key: target for key, target in wanted.items() if target > first[key]}
