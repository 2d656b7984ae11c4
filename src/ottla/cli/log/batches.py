"""`ottla log batches`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import click

from ottla.cli.command import command
from ottla.cli.failures import Failed
from ottla.cli.log.options import PARTITION_FOLDER
from ottla.cli.options import AS_JSON
from ottla.cli.rows import column, document, only_json, row, show_rows
from ottla.cli.screen import note, write
from ottla.cli.value_types import WholeNumber
from ottla.log.inspect.folder import Batch, Segment, SegmentReader, read_partition
from ottla.messaging.rendering import ms_text
from ottla.protocol.errors import ApiError
from ottla.records.compression import Compression

DEFAULT_BATCHES: Final = 1000


@row
class BatchRow:
    """A batch's header. The fields of its producer are None if it is not idempotent."""

    offsets: str = column(in_json=False)
    file: str = only_json()
    position: int
    bytes: int
    base_offset: int = only_json()
    last_offset: int = only_json()
    records: int
    compression: str
    leader_epoch: int = column("epoch")
    producer: str = column(is_optional=True, in_json=False)
    base_timestamp: int = only_json()
    max_timestamp: int = column("max time", lambda each: ms_text(each.max_timestamp))
    timestamp_type: str = only_json()
    producer_id: int | None = only_json()
    producer_epoch: int | None = only_json()
    base_sequence: int | None = only_json()
    transactional: bool = only_json()
    control: bool = only_json()
    kind: str = column(is_optional=True, in_json=False)
    crc: str = only_json()


@command()
@PARTITION_FOLDER
@click.option(
    "--from-offset", type=WholeNumber(0), default=0, help="Start at the batch with this offset."
)
@click.option(
    "--max",
    "-n",
    "most",
    type=WholeNumber(1),
    default=DEFAULT_BATCHES,
    help="Show at most N batches.",
)
@AS_JSON
def batches(folder: Path, from_offset: int, most: int, as_json: bool) -> None:
    """Show a partition's batches; with --json each as a line of JSON."""
    found = iterate_batches(read_partition(folder), from_offset)
    shown = list(islice(found, most))
    more = next(found, None)
    if as_json:
        for each in shown:
            write(json.dumps(document(each)) + "\n")
    elif shown:
        show_rows(shown)
    if more is not None:
        at = more.base_offset
        note(f"There are more batches: continue with --from-offset {at}, or raise --max.")
    elif not shown:
        note(f"No batch at offset {from_offset} or later.")


def iterate_batches(segments: list[Segment], from_offset: int) -> Iterator[BatchRow]:
    """Each batch that ends at that offset or later. Raises Failed at an invalid batch."""
    for number, segment in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= from_offset:
            continue
        with SegmentReader(segment) as reader:
            try:
                for batch in reader.batches():
                    if batch.header.last_offset >= from_offset and batch.whole:
                        yield batch_row(segment, batch)
            except ApiError as error:
                raise Failed(
                    f"{segment.log.name} at byte {reader.position}: {error}.",
                    f"For details: ottla log check {segment.log.parent}",
                ) from error


def batch_row(segment: Segment, batch: Batch) -> BatchRow:
    header = batch.header
    is_idempotent = header.producer_id >= 0
    kinds = {"control": header.is_control, "transactional": header.is_transactional}
    return BatchRow(
        offsets=f"{header.base_offset}-{header.last_offset}",
        file=segment.log.name,
        position=batch.position,
        bytes=header.size_bytes,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        records=header.count,
        compression=compression_name(header.compression),
        leader_epoch=header.leader_epoch,
        producer=f"{header.producer_id}/{header.producer_epoch}#{header.base_sequence}"
        if is_idempotent
        else "",
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        timestamp_type="append" if header.timestamp_type else "create",
        producer_id=header.producer_id if is_idempotent else None,
        producer_epoch=header.producer_epoch if is_idempotent else None,
        base_sequence=header.base_sequence if is_idempotent else None,
        transactional=header.is_transactional,
        control=header.is_control,
        kind=" ".join(name for name, is_kind in kinds.items() if is_kind),
        crc=f"{header.crc:08x}",
    )


def compression_name(number: int) -> str:
    """The number itself if it is none of Kafka's."""
    try:
        return Compression(number).name
    except ValueError:
        return str(number)
