"""What the commands of a pipeline file take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from ottla.cli.options import Parameter
from ottla.pipelines.spec.pipeline import FileSpec

FILE: Final = click.argument(
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The pipeline file: FILE.toml or FILE.py.",
)
ONLY: Final = click.option(
    "--only", metavar="NAME", multiple=True, help="This pipeline of the file. Again for more."
)


def file_options(read: Callable[[Path, Sequence[str]], FileSpec]) -> Parameter:
    """Adds FILE and --only; the function gets first what `read` makes of them."""

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_file(file: Path, only: Sequence[str], **options: Any) -> Any:
            return function(read(file, only), **options)

        return FILE(ONLY(with_file))

    return decorated
