"""`ottla log check`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ottla.cli.command import command
from ottla.cli.failures import EXIT_FAILED
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit, row
from ottla.cli.screen import say
from ottla.log.inspect.check import Checked, Fault, check_partition
from ottla.log.inspect.folder import is_partition, partition_folders
from ottla.wording.plural import plural


@row
class CheckedPartition:
    """What was read of a partition, and what is wrong with it."""

    partition: str
    segments: int
    batches: int
    records: int
    bytes: int
    start_offset: int | None
    end_offset: int
    torn_tail_bytes: int
    faults: Sequence[Fault]

    def show(self) -> None:
        verdict = plural(len(self.faults), "fault") if self.faults else "no fault"
        say(
            f"{self.partition}: {verdict}; segments {self.segments:,}, batches {self.batches:,}, "
            f"records {self.records:,}, next offset {self.end_offset:,}."
        )
        for fault in self.faults:
            say(f"  {fault.file} at byte {fault.position}: {fault.fault}")
        if self.torn_tail_bytes:
            say(
                f"  {self.torn_tail_bytes:,} bytes at the end are not a whole batch: either being "
                "written now, or torn by a crash (the next start removes them)."
            )


@command()
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER...",
    help="Partition folders, or a whole data folder.",
)
@AS_JSON
def check(folders: Sequence[Path], as_json: bool) -> None:
    """Read every byte of partitions and report each fault. Exit code 1 if there is one."""
    partitions: list[Path] = []
    for folder in folders:
        inside = folder.is_dir() and not is_partition(folder)
        partitions += (partition_folders(folder) if inside else []) or [folder]
    rows: list[CheckedPartition] = []
    for partition in partitions:
        rows.append(checked_partition(check_partition(partition)))
        if not as_json:
            # At once: the next partition may take a while.
            rows[-1].show()
    if as_json:
        emit(rows, as_json=True)
    if any(each.faults for each in rows):
        raise click.exceptions.Exit(EXIT_FAILED)


def checked_partition(checked: Checked) -> CheckedPartition:
    return CheckedPartition(
        checked.folder.name,
        checked.segments,
        checked.batches,
        checked.records,
        checked.size_bytes,
        checked.start_offset,
        checked.next_offset,
        checked.torn_bytes,
        checked.faults,
    )
