"""`ottla log stray adopt`."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.command import command
from ottla.cli.log.stray.folders import found_stray
from ottla.cli.options import PARTITIONS
from ottla.cli.screen import say
from ottla.log import names
from ottla.storage.stray_log import stored_log
from ottla.wording.plural import plural


@command()
@click.argument(
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="A stray folder, as listed.",
)
@PARTITIONS
@click.option(
    "--zookeeper",
    metavar="HOST:PORT",
    help="The ensemble of the broker's cluster, with its chroot, as for ottla serve.",
)
def adopt(folder: Path, partitions: int | None, zookeeper: str | None) -> None:
    """Put a folder back as its partition's log, while its broker is stopped.

    If the topic exists, the partition must have no records yet. If the broker's own store has lost
    the topic, it is created with the folder's topic id and default settings; --partitions N says
    how many partitions it had, if some had no records.
    """
    # Imported late: the other commands of `ottla log` need no tree.
    from ottla.node.stray_adoption import put_back

    stray = found_stray(folder)
    done = put_back(stray, stored_log(stray), partitions, zookeeper)
    name = names.folder_name(done.topic, done.partition)
    if done.made_partitions is not None:
        count = plural(done.made_partitions, "partition")
        say(f"Created topic {done.topic} with {count} and default settings.")
    say(f"{name} has its records again. Start the broker.")
