"""A small JSON object that is kept beside data and replaced as a whole.

All such files are one object with "version". A crash leaves the former text or the new one. What
is damaged, or was written by another version, is refused with what to do, and never guessed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from ottla.pipelines.errors import PipelineError

VERSION: Final = 1

T = TypeVar("T")


class Folder(Protocol):
    """Where a document is kept; `write` replaces a file as a whole."""

    @property
    def location(self) -> str: ...
    def read(self, name: str) -> str | None: ...
    def write(self, name: str, text: str) -> None: ...
    def delete(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Document(Generic[T]):
    """One kind of document: its file's name, and its value as a JSON object without "version".

    `instead` says what to do where it cannot be used, `if_damaged` where that differs if it is
    damaged. `parse` may raise what a missing or wrong field raises.
    """

    name: str
    parse: Callable[[dict[str, Any]], T]
    build: Callable[[T], dict[str, Any]]
    instead: str = "use a new checkpoint"
    if_damaged: str = ""
    indent: int | None = None

    def text(self, value: T) -> str:
        """Return a value as it is kept."""
        document = {"version": VERSION} | self.build(value)
        return json.dumps(document, indent=self.indent) + "\n"

    def value(self, text: str, path: str) -> T:
        """Return what a text holds; `path` names the file in errors. Raises PipelineError."""
        try:
            document = json.loads(text)
            if document["version"] == VERSION:
                return self.parse(document)
            found = document["version"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            way_out = self.if_damaged or f"Restore it, or {self.instead}"
            raise PipelineError(f"{path} is damaged. {way_out}") from error
        raise PipelineError(
            f"{path} was written by another version of Ottla (version {found}, not {VERSION}). "
            f"Use that version, or {self.instead}"
        )

    def read(self, folder: Folder) -> T | None:
        """Return what a folder holds, None where it has no such file. Raises PipelineError."""
        text = folder.read(self.name)
        # A file without text is damaged: a disk that was full or lost power leaves such ones.
        return None if text is None else self.value(text, f"{folder.location}/{self.name}")

    def write(self, folder: Folder, value: T) -> None:
        """Replace the file as a whole."""
        folder.write(self.name, self.text(value))
