"""What the commands of a pipeline file take."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

FILE: Final = click.argument(
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The pipeline file: FILE.toml or FILE.py.",
)
ONLY: Final = click.option(
    "--only", metavar="NAME", multiple=True, help="This pipeline of the file. Again for more."
)
