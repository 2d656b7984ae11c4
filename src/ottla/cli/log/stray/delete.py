"""`ottla log stray delete`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

import click

from ottla.cli.command import command
from ottla.cli.confirmation import confirm
from ottla.cli.failures import Failed
from ottla.cli.log.stray.folders import found_stray
from ottla.cli.options import YES
from ottla.cli.screen import say
from ottla.log import names
from ottla.protocol.kafka_uuid import random_uuid
from ottla.storage.stray_folder import folder_bytes
from ottla.wording.sizes import size_text


@command()
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER...",
    help="Stray folders, as listed.",
)
@YES
def delete(folders: Sequence[Path], yes: bool) -> None:
    """Delete stray folders with all their records. The broker may run."""
    strays = [found_stray(folder) for folder in folders]
    total = size_text(sum(folder_bytes(each.path) for each in strays))
    shown = ", ".join(names.folder_name(each.topic, each.partition) for each in strays)
    confirm(
        f"Delete the records of {shown} ({total})?",
        yes=yes,
        refused="Nothing was deleted.",
    )
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
