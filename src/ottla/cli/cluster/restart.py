"""`ottla cluster restart`."""

from __future__ import annotations

from pathlib import Path

from ottla.cli.cluster.running import OWN_BROKER, RUNNING_DATA, carry_out
from ottla.cli.command import command
from ottla.cli.options import AS_JSON


@command()
@OWN_BROKER
@RUNNING_DATA
@AS_JSON
def restart(broker: int, data: Path, as_json: bool) -> None:
    """Stop a broker if it runs, and start it with its data, ports and settings."""
    carry_out("restart", data, as_json=as_json, broker=broker)
