"""`ottla cluster kill`."""

from __future__ import annotations

from pathlib import Path

from ottla.cli.cluster.running import OWN_BROKER, RUNNING_DATA, carry_out
from ottla.cli.command import command
from ottla.cli.options import AS_JSON


@command()
@OWN_BROKER
@RUNNING_DATA
@AS_JSON
def kill(broker: int, data: Path, as_json: bool) -> None:
    """Kill a broker, without a shutdown (SIGKILL)."""
    carry_out("kill", data, as_json=as_json, broker=broker)
