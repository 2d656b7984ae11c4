"""`ottla log stray delete`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ottla.cli.command import command
from ottla.cli.confirmation import confirm
from ottla.cli.failures import Failed
from ottla.cli.log.stray.folders import found_stray
from ottla.cli.options import YES
from ottla.cli.screen import say
from ottla.log import names
from ottla.storage.stray_folder import delete_stray, folder_bytes
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
        try:
            delete_stray(each)
        except OSError as error:
            raise Failed(f"cannot delete {each.path}: {error.strerror}.") from error
        say(f"Deleted {each.path}.")
