"""Lines of a journey, in a tree: what a printer lays out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

Document = dict[str, Any]

PLAIN: Final = ""
STEP: Final = "step"
NAME: Final = "name"
WEAK: Final = "weak"
GOOD: Final = "good"
WAITING: Final = "waiting"
BAD: Final = "bad"
"""Tones of a part, for which a printer has styles."""


@dataclass(slots=True)
class Branch:
    """A line made of parts, each with its tone, and the lines below it. Text from outside is as it
    came: a printer makes it printable.
    """

    parts: list[tuple[str, str]]
    below: list[Branch] = field(default_factory=list)

    def text(self) -> str:
        return "".join(text for text, _ in self.parts)

    def add(self, *parts: tuple[str, str] | str) -> Branch:
        branch = line(*parts)
        self.below.append(branch)
        return branch


def line(*parts: tuple[str, str] | str) -> Branch:
    """A branch of plain parts and of parts with a tone."""
    return Branch([(part, PLAIN) if isinstance(part, str) else part for part in parts])
