"""One description of an argument: its name in a file, what it takes, its default, a line of help.

A dataclass's fields carry it. A pipeline file is read by it, and the reference is printed from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final, Literal

_KEY: Final = "option"

Kind = Literal[
    "text", "path", "choice", "flag", "count", "names", "paths", "settings", "conditions", "other"
]
"""`path`: relative to the file's folder. `names`: a list, or one. `other`: read by code of its own
(`takes` says what it takes)."""

TAKES: Final = {
    "text": "text",
    "path": "path",
    "flag": "true or false",
    "count": "whole number",
    "names": "list of names, or one",
    "paths": "list of paths, or one",
    "settings": "table",
    "conditions": "table of texts",
}


@dataclass(frozen=True, slots=True)
class Option:
    """An argument. `name` is that of its field; `given` its default, None for none."""

    name: str
    help: str
    kind: Kind = "text"
    choices: Sequence[str] = ()
    example: str = ""
    takes: str = ""
    at_least: int = 0
    is_required: bool = False
    is_secret: bool = False
    default: Any = None

    @property
    def taken(self) -> str:
        """What the option takes, for the reference."""
        if self.choices:
            return ", ".join(f'`"{word}"`' for word in self.choices)
        return self.takes or TAKES[self.kind]


def option(
    help: str,
    kind: Kind = "text",
    *,
    default: Any = MISSING,
    choices: Sequence[str] = (),
    example: str = "",
    takes: str = "",
    at_least: int = 0,
    required: bool = False,
    secret: bool = False,
) -> Any:
    """Return the field of a dataclass that has this description. `secret`: not in its
    repr, and in no problem."""
    described = {
        "help": help,
        "kind": "choice" if choices else kind,
        "choices": choices,
        "example": example,
        "takes": takes,
        "at_least": at_least,
        "is_required": required,
        "is_secret": secret,
    }
    return field(default=default, metadata={_KEY: described}, repr=not secret)


def options_of(kind: type) -> dict[str, Option]:
    """Return the options of a dataclass by name; fields without a description are none."""
    return {
        one.name: Option(
            one.name, **one.metadata[_KEY], default=None if one.default is MISSING else one.default
        )
        for one in fields(kind)
        if _KEY in one.metadata
    }
