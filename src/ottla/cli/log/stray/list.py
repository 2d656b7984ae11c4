"""`ottla log stray list`."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.command import command
from ottla.cli.failures import Failed
from ottla.cli.options import AS_JSON
from ottla.cli.rows import column, emit, only_json, row
from ottla.messaging.rendering import ms_text
from ottla.protocol.kafka_uuid import uuid_text
from ottla.storage.stray_folder import StrayFolder, folder_bytes, stray_folders
from ottla.storage.stray_log import stored_log
from ottla.wording.sizes import Size


@row
class Stray:
    """A stray folder. `end_offset` is after the last record."""

    topic: str
    partition: int
    topic_id: str | None
    offsets: str = column(in_json=False)
    start_offset: int = only_json()
    end_offset: int = only_json()
    bytes: Size = column("size")
    set_aside_ms: int = column("set aside", lambda each: ms_text(each.set_aside_ms))
    why: str | None = only_json()
    folder: str


@command("list")
@click.argument(
    "folder",
    type=click.Path(path_type=Path),
    metavar="DATA_FOLDER",
    help="A broker's data folder.",
)
@AS_JSON
def list_strays(folder: Path, as_json: bool) -> None:
    """List the folders that a broker set aside.

    No topic had them, and nothing proved that their topic was deleted.
    """
    try:
        rows = [stray_row(each) for each in stray_folders(str(folder))]
    except OSError as error:
        raise Failed(f"cannot read {folder}: {error.strerror}.") from error
    emit(rows, as_json=as_json, none=f"No stray folders in {folder}.")


def stray_row(stray: StrayFolder) -> Stray:
    stored = stored_log(stray)
    first, after = stored.start_offset, stored.end_offset
    return Stray(
        topic=stray.topic,
        partition=stray.partition,
        topic_id=None if stray.topic_id is None else uuid_text(stray.topic_id),
        offsets=f"{first}-{after - 1}" if after > first else "none",
        start_offset=first,
        end_offset=after,
        bytes=Size(folder_bytes(stray.path)),
        set_aside_ms=stray.at_ms,
        why=stray.why,
        folder=stray.path,
    )
