"""`ottla cluster add`."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.cluster.running import RUNNING_DATA, carry_out
from ottla.cli.command import command
from ottla.cli.options import AS_JSON


@command()
@click.option("--rack", metavar="RACK", help="The new broker's rack, if the others have one.")
@RUNNING_DATA
@AS_JSON
def add(rack: str | None, data: Path, as_json: bool) -> None:
    """Start one more broker. It has no replicas until topics are created or moved."""
    carry_out("add", data, as_json=as_json, rack=rack)
