"""`ottla certificate client`."""

from __future__ import annotations

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
from ottla.security.development.certificates import issue, write


@command()
@click.argument("name", metavar="NAME", help="The client's name: its principal is User:CN=NAME.")
@FOLDER
@DAYS
@REPLACE
@AS_JSON
def client(name: str, folder: Path, days: int, replace: bool, as_json: bool) -> None:
    """Make the certificate of a client, in one file with its private key.

    It is for listeners with ssl.client.auth=required or requested.
    """
    path = file_of(folder, name, taken=(AUTHORITY, BROKER))
    signed = issue(authority_in(folder), name, [], days)
    write(path, signed.together, replace=replace)
    settings = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority_files(folder)[1].resolve()),
        "ssl.certificate.location": str(path.resolve()),
        "ssl.key.location": str(path.resolve()),
    }
    emit(made(path, signed, settings), as_json=as_json)
