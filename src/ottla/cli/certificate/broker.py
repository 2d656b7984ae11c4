"""`ottla certificate broker`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ottla.cli.certificate.options import (
    AUTHORITY,
    BROKER,
    DAYS,
    FOLDER,
    REPLACE,
    authority_files,
    authority_in,
    file_of,
    made,
)
from ottla.cli.command import command
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.security.development.certificates import (
    MAX_COMMON_NAME_CHARACTERS,
    issue,
    write,
)
from ottla.security.development.hosts import own_hosts


@command()
@click.argument(
    "hosts",
    metavar="[HOST]...",
    nargs=-1,
    help="Names and addresses at which clients connect. Default: those of this machine.",
)
@FOLDER
@click.option("--name", help="The file's name without .pem. Default: broker.")
@DAYS
@REPLACE
@AS_JSON
def broker(
    hosts: Sequence[str],
    folder: Path,
    name: str | None,
    days: int,
    replace: bool,
    as_json: bool,
) -> None:
    """Make the certificate of a broker, in one file with its private key.

    Clients check that it is for the host that they connect to: name each one of
    advertised.listeners.
    """
    path = file_of(folder, BROKER if name is None else name, taken=(AUTHORITY,))
    names = list(hosts) or own_hosts()
    signed = issue(authority_in(folder), names[0][:MAX_COMMON_NAME_CHARACTERS], names, days)
    write(path, signed.together, replace=replace)
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path.resolve()),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority_files(folder)[1].resolve()),
    }
    emit(made(path, signed, settings), as_json=as_json)
