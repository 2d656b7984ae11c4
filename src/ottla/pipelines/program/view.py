"""To whom a session shows how its pipelines stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ottla.pipelines.program.snapshot import Snapshot


class View(Protocol):
    """Shows the state of the pipelines; called several times a second.

    May raise, if there is nobody left to show it to: the queries then end in order.
    """

    shows_inside: bool
    """Whether it shows how far a batch under way has come."""

    def show(self, snapshots: Sequence[Snapshot]) -> None: ...

    def tell(self, line: str) -> None:
        """Show a notice beside the state, such as a warning."""

    def close(self, snapshots: Sequence[Snapshot]) -> None:
        """Show the last state, and leave it."""
