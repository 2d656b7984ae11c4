"""What would be told again at each turn, such as a topic that is refused, is told once."""

from __future__ import annotations

from typing import Final

from ottla.mirroring.events import Event, Tell

MAX_KEPT: Final = 10_000
"""Events; after so many others one is told again."""


class ToldOnce:
    """For one thread at a time."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told: dict[tuple[str, ...], None] = {}

    def __call__(self, event: Event) -> None:
        """Tells the event, unless it was told."""
        key = event.kind, event.text, *map(str, event.facts.values())
        if key in self._told:
            return
        if len(self._told) >= MAX_KEPT:
            del self._told[next(iter(self._told))]
        self._told[key] = None
        self._tell(event)

    def forget(self) -> None:
        """From now on everything is told again."""
        self._told.clear()
