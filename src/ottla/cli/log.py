"""`ottla log`: the contents of a partition's folder on this machine, and whether it is intact."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ottla.cli.failures import EXIT_FAILED, Failed
from ottla.cli.log_failures import inspect_failures
from ottla.cli.log_stray import commands as stray_commands
from ottla.cli.records.rendering import time_text
from ottla.cli.screen import note, say, show_json, show_table, write
from ottla.cli.typer_options import AsJson
from ottla.log import offset_index, time_index
from ottla.log.inspect.check import Checked, check_partition
from ottla.log.inspect.folder import (
    Batch,
    Segment,
    SegmentReader,
    is_partition,
    partition_folders,
    read_entries,
    read_partition,
)
from ottla.protocol.errors import ApiError

commands = typer.Typer(
    help="Inspect and check a partition's folder; list, put back and delete stray folders."
)
commands.add_typer(stray_commands, name="stray", no_args_is_help=True)

COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
DEFAULT_BATCHES: Final = 1000

Partition = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="A partition's folder, or one of its .log files.")
]
Folders = Annotated[
    list[Path],
    typer.Argument(metavar="FOLDER", help="Partition folders, or a whole data folder."),
]
FromOffset = Annotated[
    int,
    typer.Option("--from-offset", min=0, metavar="N", help="Start at the batch with this offset."),
]
MostBatches = Annotated[
    int, typer.Option("--max", "-n", min=1, metavar="N", help="Show at most N batches.")
]


@commands.command()
@inspect_failures()
def segments(folder: Partition, as_json: AsJson = False) -> None:
    """Show a partition's segments."""
    found = [segment_document(segment) for segment in read_partition(folder)]
    if as_json:
        show_json(found)
        return
    show_table(
        ["base offset", "next offset", "batches", "records", "bytes", "first time", "last time"],
        [
            [
                each["base_offset"],
                each["next_offset"],
                each["batches"],
                each["records"],
                each["bytes"],
                shown_time(each["first_timestamp"]),
                shown_time(each["last_timestamp"]),
            ]
            for each in found
        ],
    )
    for each in found:
        if each["fault"]:
            note(f"{each['file']}: {each['fault']}. For details: ottla log check {folder}")


def segment_document(segment: Segment) -> dict[str, Any]:
    batches, records, next_offset, fault = 0, 0, segment.base_offset, None
    times: list[int] = []
    with SegmentReader(segment) as reader:
        try:
            for batch in reader.batches():
                if not batch.whole:
                    break
                header = batch.header
                batches += 1
                records += header.count
                next_offset = header.next_offset
                times = [
                    min([*times[:1], header.base_timestamp]),
                    max([*times[1:], header.max_timestamp]),
                ]
        except ApiError as error:
            fault = str(error)
        size_bytes = reader.size_bytes
        if fault is None and reader.left_bytes:
            fault = f"{reader.left_bytes} bytes at the end are not a whole batch"
    return {
        "file": segment.log.name,
        "base_offset": segment.base_offset,
        "next_offset": next_offset,
        "batches": batches,
        "records": records,
        "bytes": size_bytes,
        "first_timestamp": times[0] if times else None,
        "last_timestamp": times[1] if times else None,
        "index_entries": len(read_entries(segment.index, offset_index.ENTRY)),
        "time_index_entries": len(read_entries(segment.time_index, time_index.ENTRY)),
        "fault": fault,
    }


def shown_time(at_ms: int | None) -> str | None:
    return None if at_ms is None else time_text(1, at_ms)


@commands.command()
@inspect_failures()
def batches(
    folder: Partition,
    from_offset: FromOffset = 0,
    most: MostBatches = DEFAULT_BATCHES,
    as_json: AsJson = False,
) -> None:
    """Show a partition's batches; with --json each as a line of JSON."""
    shown: list[dict[str, Any]] = []
    more = None
    for document in iterate_batches(read_partition(folder), from_offset):
        if len(shown) == most:
            more = document["base_offset"]
            break
        shown.append(document)
    if as_json:
        for document in shown:
            write(json.dumps(document) + "\n")
    elif shown:
        show_table(
            [
                "offsets",
                "position",
                "bytes",
                "records",
                "compression",
                "epoch",
                "producer",
                "max time",
                "kind",
            ],
            [
                [
                    f"{each['base_offset']}-{each['last_offset']}",
                    each["position"],
                    each["bytes"],
                    each["records"],
                    each["compression"],
                    each["leader_epoch"],
                    producer_name(each),
                    shown_time(each["max_timestamp"]),
                    kind_name(each),
                ]
                for each in shown
            ],
            drop_empty=("producer", "kind"),
        )
    if more is not None:
        note(f"There are more batches: continue with --from-offset {more}, or raise --max.")
    elif not shown:
        note(f"No batch at offset {from_offset} or later.")


def iterate_batches(found: list[Segment], from_offset: int) -> Iterator[dict[str, Any]]:
    """A document for each batch that ends at that offset or later. Raises Failed at an invalid
    batch.
    """
    for number, segment in enumerate(found):
        if number + 1 < len(found) and found[number + 1].base_offset <= from_offset:
            continue
        with SegmentReader(segment) as reader:
            try:
                for batch in reader.batches():
                    if batch.header.last_offset >= from_offset and batch.whole:
                        yield batch_document(segment, batch)
            except ApiError as error:
                raise Failed(
                    f"{segment.log.name} at byte {reader.position}: {error}.",
                    f"For details: ottla log check {segment.log.parent}",
                ) from error


def batch_document(segment: Segment, batch: Batch) -> dict[str, Any]:
    header = batch.header
    known = header.compression < len(COMPRESSIONS)
    return {
        "file": segment.log.name,
        "position": batch.position,
        "bytes": header.size_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.count,
        "compression": COMPRESSIONS[header.compression] if known else str(header.compression),
        "leader_epoch": header.leader_epoch,
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "timestamp_type": "append" if header.timestamp_type else "create",
        "producer_id": header.producer_id if header.producer_id >= 0 else None,
        "producer_epoch": header.producer_epoch if header.producer_id >= 0 else None,
        "base_sequence": header.base_sequence if header.producer_id >= 0 else None,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "crc": f"{header.crc:08x}",
    }


def producer_name(document: dict[str, Any]) -> str:
    """`id/epoch#sequence` of an idempotent producer."""
    if document["producer_id"] is None:
        return ""
    return f"{document['producer_id']}/{document['producer_epoch']}#{document['base_sequence']}"


def kind_name(document: dict[str, Any]) -> str:
    """Whether the batch is special, such as transactional."""
    kinds = {"control": document["control"], "transactional": document["transactional"]}
    return " ".join(name for name, wanted in kinds.items() if wanted)


@commands.command()
@inspect_failures()
def check(folders: Folders, as_json: AsJson = False) -> None:
    """Read every byte of partitions and report each fault. Exit code 1 if there is one."""
    partitions: list[Path] = []
    for folder in folders:
        inside = folder.is_dir() and not is_partition(folder)
        partitions += (partition_folders(folder) if inside else []) or [folder]
    results: list[Checked] = []
    for partition in partitions:
        results.append(check_partition(partition))
        if not as_json:
            show_checked(results[-1])
    if as_json:
        show_json([checked_document(result) for result in results])
    if any(result.faults for result in results):
        raise typer.Exit(EXIT_FAILED)


def checked_document(checked: Checked) -> dict[str, Any]:
    return {
        "partition": checked.folder.name,
        "segments": checked.segments,
        "batches": checked.batches,
        "records": checked.records,
        "bytes": checked.size_bytes,
        "start_offset": checked.start_offset,
        "end_offset": checked.next_offset,
        "torn_tail_bytes": checked.torn_bytes,
        "faults": [asdict(fault) for fault in checked.faults],
    }


def show_checked(checked: Checked) -> None:
    found = len(checked.faults)
    verdict = "no fault" if not found else f"{found} fault{'' if found == 1 else 's'}"
    say(
        f"{checked.folder.name}: {verdict}; segments {checked.segments:,}, batches "
        f"{checked.batches:,}, records {checked.records:,}, next offset {checked.next_offset:,}."
    )
    for fault in checked.faults:
        say(f"  {fault.file} at byte {fault.position}: {fault.fault}")
    if checked.torn_bytes:
        say(
            f"  {checked.torn_bytes:,} bytes at the end are not a whole batch: either being "
            "written now, or "
            "torn by a crash (the next start removes them)."
        )
