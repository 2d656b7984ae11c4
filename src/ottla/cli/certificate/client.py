"""`ottla certificate client`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from ottla.cli.certificate.options import (
    DAYS,
    FOLDER,
    REPLACE,
    authority_files,
    authority_in,
    made,
)
from ottla.cli.command import command
from ottla.cli.failures import UsageFailed
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.security.development.certificates import issue, write

OWN_FILES = ("authority", "broker")


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
    file = re.sub(r"[^\w.@-]+", "-", name).strip(".-")
    if not file or file in OWN_FILES:
        raise UsageFailed(f"a client's certificate cannot have the name {name!r}.")
    signed = issue(authority_in(folder), name, [], days)
    path = folder / f"{file}.pem"
    write(path, signed.together, replace=replace)
    settings = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority_files(folder)[1].resolve()),
        "ssl.certificate.location": str(path.resolve()),
        "ssl.key.location": str(path.resolve()),
    }
    emit(made(path, signed, settings), as_json=as_json)
