"""`ottla log stray`: folders that a broker kept though no topic has them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import SystemRandom
from typing import Annotated, Any

import typer

from ottla.cli.failures import EXIT_FAILED, Failed
from ottla.cli.log_failures import inspect_failures
from ottla.cli.records.rendering import time_text
from ottla.cli.screen import ask, note, say, show_json, show_table
from ottla.cli.sizes import size_text
from ottla.cli.typer_options import AsJson, Partitions, Yes
from ottla.log import names
from ottla.log.inspect.errors import InspectError
from ottla.log.inspect.folder import SegmentReader, read_partition
from ottla.log.leader_epochs import LeaderEpochs
from ottla.protocol.errors import ApiError
from ottla.protocol.kafka_uuid import random_uuid, uuid_text
from ottla.storage.stray_folder import (
    StoredLog,
    StrayFolder,
    folder_bytes,
    read_stray,
    stray_folders,
)

commands = typer.Typer(help="List, put back and delete folders that belong to no topic.")

DataFolder = Annotated[Path, typer.Argument(metavar="DATA_FOLDER", help="A broker's data folder.")]
Stray = Annotated[Path, typer.Argument(metavar="FOLDER", help="A stray folder, as listed.")]
Strays = Annotated[list[Path], typer.Argument(metavar="FOLDER", help="Stray folders, as listed.")]
ZooKeeper = Annotated[
    str | None,
    typer.Option(
        "--zookeeper",
        metavar="HOST:PORT",
        help="The ensemble of the broker's cluster, with its chroot, as for ottla serve.",
    ),
]


@commands.command("list")
@inspect_failures()
def list_strays(folder: DataFolder, as_json: AsJson = False) -> None:
    """List the folders that a broker set aside.

    No topic had them, and nothing proved that their topic was deleted.
    """
    try:
        found = [document(each) for each in stray_folders(str(folder))]
    except OSError as error:
        raise Failed(f"cannot read {folder}: {error.strerror}.") from error
    if as_json:
        show_json(found)
        return
    if not found:
        note(f"No stray folders in {folder}.")
        return
    show_table(
        ["topic", "partition", "topic id", "offsets", "size", "set aside", "folder"],
        [
            [
                each["topic"],
                each["partition"],
                each["topic_id"],
                offsets_text(each),
                size_text(each["bytes"]),
                time_text(1, each["set_aside_ms"]),
                each["folder"],
            ]
            for each in found
        ],
    )


def document(stray: StrayFolder) -> dict[str, Any]:
    """For `--json`."""
    stored = stored_log(stray)
    return {
        "topic": stray.topic,
        "partition": stray.partition,
        "topic_id": None if stray.topic_id is None else uuid_text(stray.topic_id),
        "start_offset": stored.start_offset,
        "end_offset": stored.end_offset,
        "bytes": folder_bytes(stray.path),
        "set_aside_ms": stray.at_ms,
        "why": stray.why,
        "folder": stray.path,
    }


def offsets_text(each: dict[str, Any]) -> str:
    """The first and the last offset."""
    first, after = each["start_offset"], each["end_offset"]
    return f"{first}-{after - 1}" if after > first else "none"


def stored_log(stray: StrayFolder) -> StoredLog:
    """The offsets and the latest leader epoch of a log, up to the first invalid batch."""
    epoch = LeaderEpochs(stray.path).latest
    try:
        segments = read_partition(Path(stray.path))
    except InspectError:
        return StoredLog(0, 0, epoch)
    start = max(segments[0].base_offset, stray.log_start_offset or 0)
    end = segments[-1].base_offset
    with SegmentReader(segments[-1]) as reader:
        try:
            for batch in reader.batches():
                if batch.whole:
                    end = batch.header.next_offset
                    epoch = max(epoch, batch.header.leader_epoch)
        except ApiError:
            pass  # `ottla log check` names it, and the next start of the broker recovers the log
    return StoredLog(start, max(start, end), epoch)


@commands.command("adopt")
@inspect_failures()
def adopt_stray(folder: Stray, partitions: Partitions = None, zookeeper: ZooKeeper = None) -> None:
    """Put a folder back as its partition's log, while its broker is stopped.

    If the topic exists, the partition must have no records yet. If the broker's own store has lost
    the topic, it is created with the folder's topic id and default settings; --partitions N says
    how many partitions it had, if some had no records.
    """
    # Imported late: the other commands of `ottla log` need no tree.
    from ottla.cli.log_adoption import put_back

    stray = found_stray(folder)
    done = put_back(stray, stored_log(stray), partitions, zookeeper)
    name = names.folder_name(done.topic, done.partition)
    if done.made_partitions is not None:
        count = f"{done.made_partitions} partition{'s'[done.made_partitions == 1 :]}"
        say(f"Created topic {done.topic} with {count} and default settings.")
    say(f"{name} has its records again. Start the broker.")


@commands.command("delete")
def delete_strays(folders: Strays, yes: Yes = False) -> None:
    """Delete stray folders with all their records. The broker may run."""
    strays = [found_stray(folder) for folder in folders]
    total = size_text(sum(folder_bytes(each.path) for each in strays))
    if not yes:
        shown = ", ".join(names.folder_name(each.topic, each.partition) for each in strays)
        question = f"Delete the records of {shown} ({total})?"
        outright = "ottla log stray delete FOLDER... --yes"
        if not ask(question, what_else=f"To delete without confirmation: {outright}"):
            note("Nothing was deleted.")
            raise typer.Exit(EXIT_FAILED)
    for each in strays:
        root = os.path.dirname(each.path) or "."
        unique = random_uuid(SystemRandom())
        renamed = f"{root}/{names.deleted_folder_name(each.topic, each.partition, unique)}"
        try:
            # Renamed first: if this is interrupted, the broker's next start deletes the rest.
            os.rename(each.path, renamed)
            shutil.rmtree(renamed)
        except OSError as error:
            raise Failed(f"cannot delete {each.path}: {error.strerror}.") from error
        say(f"Deleted {each.path}.")


def found_stray(folder: Path) -> StrayFolder:
    """Raises Failed that says what the folder is instead."""
    path = os.path.normpath(folder)
    hint = f"To list stray folders: ottla log stray list {folder.parent}"
    try:
        stray = read_stray(path) if os.path.isdir(path) else None
    except OSError as error:
        raise Failed(f"cannot read {folder}: {error.strerror}.") from error
    if stray is None:
        what = "is not a stray folder" if os.path.exists(path) else "does not exist"
        raise Failed(f"{folder} {what}.", hint)
    return stray
