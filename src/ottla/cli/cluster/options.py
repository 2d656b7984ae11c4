"""Options that several commands of `ottla cluster` share."""

from __future__ import annotations

from typing import Final

import click

from ottla.cli.value_types import Seconds

TIMEOUT: Final = click.option(
    "--timeout", type=Seconds(1), default=3600.0, help="How long to wait until it is done."
)
