"""How long a measurement runs, and how it ends."""

from __future__ import annotations

from typing import Final

import click

from ottla.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED
from ottla.cli.screen import note
from ottla.cli.value_types import Seconds, WholeNumber
from ottla.messaging.load.meter import Meter

DEFAULT_FOR_S: Final = 10.0
RECORDS: Final = click.option("--records", "-n", type=WholeNumber(1), help="Stop after N records.")
FOR: Final = click.option("--for", "for_s", type=Seconds(0.1), help="Stop after this time.")


def duration(records: int | None, for_s: float | None) -> float | None:
    """How long to run: 10 s if nothing limits the run."""
    return DEFAULT_FOR_S if records is None and for_s is None else for_s


def end(meter: Meter, is_interrupted: bool) -> None:
    """Exit with the code of what happened."""
    for reason, count in meter.errors.items():
        note(f"{count:,} not delivered: {reason.rstrip('.')}.")
    if is_interrupted:
        raise click.exceptions.Exit(EXIT_INTERRUPTED)
    if meter.errors:
        raise click.exceptions.Exit(EXIT_FAILED)
