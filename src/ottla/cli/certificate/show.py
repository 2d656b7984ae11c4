"""`ottla certificate show`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ottla.cli.certificate.options import shown
from ottla.cli.command import command
from ottla.cli.failures import Failed
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.security.development.certificates import CertificateError, facts_of, read


@command()
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Files with certificates in PEM.",
)
@AS_JSON
def show(files: Sequence[Path], as_json: bool) -> None:
    """Show certificates: names, who signed them, and when they expire."""
    rows = []
    for file in files:
        try:
            rows += [shown(str(file), facts) for facts in facts_of(read(file))]
        except CertificateError as error:
            if error.hint is not None or str(file) in error.message:
                raise
            raise Failed(f"{file}: {error.message}") from None
    emit(rows, as_json=as_json)
