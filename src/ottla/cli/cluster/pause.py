"""`ottla cluster pause`."""

from __future__ import annotations

from pathlib import Path

from ottla.cli.cluster.running import OWN_BROKER, RUNNING_DATA, carry_out
from ottla.cli.command import command
from ottla.cli.options import AS_JSON


@command()
@OWN_BROKER
@RUNNING_DATA
@AS_JSON
def pause(broker: int, data: Path, as_json: bool) -> None:
    """Suspend a broker (SIGSTOP): its connections stay open, but it does not respond."""
    carry_out("pause", data, as_json=as_json, broker=broker)
