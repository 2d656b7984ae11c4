"""Arguments that the commands of `ottla log` share."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

PARTITION_FOLDER: Final = click.argument(
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="A partition's folder, or one of its .log files.",
)
