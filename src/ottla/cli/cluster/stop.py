"""`ottla cluster stop`."""

from __future__ import annotations

from pathlib import Path

from ottla.cli.cluster.running import OWN_BROKER, RUNNING_DATA, carry_out
from ottla.cli.command import command
from ottla.cli.options import AS_JSON


@command()
@OWN_BROKER
@RUNNING_DATA
@AS_JSON
def stop(broker: int, data: Path, as_json: bool) -> None:
    """Stop a broker after it has handed over its leaderships (SIGTERM)."""
    carry_out("stop", data, as_json=as_json, broker=broker)
