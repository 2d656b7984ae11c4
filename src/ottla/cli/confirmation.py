"""Asks before something is changed that cannot be undone."""

from __future__ import annotations

import click

from ottla.cli.failures import EXIT_FAILED
from ottla.cli.screen import ask, note


def confirm(
    question: str,
    *,
    yes: bool,
    what_else: str = "To go on without a question, add --yes.",
    refused: str = "Nothing was changed.",
) -> None:
    """Ask, unless `yes`. If the answer is no, says `refused` and ends the command with code 1.

    Raises UsageFailed with the hint `what_else` without a terminal.
    """
    if not yes and not ask(question, what_else=what_else):
        note(refused)
        raise click.exceptions.Exit(EXIT_FAILED)
