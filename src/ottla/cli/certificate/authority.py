"""`ottla certificate authority`."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.certificate.options import FOLDER, REPLACE, authority_files, days_option, made
from ottla.cli.command import command
from ottla.cli.failures import Failed
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.security.development.certificates import (
    AUTHORITY_DAYS,
    PUBLIC_MODE,
    make_authority,
    write,
)


@command()
@FOLDER
@click.option("--name", default="Ottla development", help="The authority's name.")
@days_option(AUTHORITY_DAYS)
@REPLACE
@AS_JSON
def authority(folder: Path, name: str, days: int, replace: bool, as_json: bool) -> None:
    """Make an authority, which signs certificates of brokers and clients.

    authority.pem is what clients and brokers trust. authority.key stays with you: anybody who has
    it can make certificates that they believe.
    """
    key, certificate = authority_files(folder)
    there = [path for path in (key, certificate) if path.exists()]
    if there and not replace:
        raise Failed(
            f"{there[0]} exists.",
            "To replace it, add --replace: certificates that it has signed count no longer.",
        )
    signed = make_authority(name, days)
    write(key, signed.key, replace=replace)
    write(certificate, signed.certificate, replace=replace, mode=PUBLIC_MODE)
    emit(made(certificate, signed, {}), as_json=as_json)
