"""A checkpoint's folder in memory, for tests of what is kept in one."""

from __future__ import annotations


class MemoryFolder:
    location = "checkpoint"

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def read(self, name: str) -> str | None:
        return self.texts.get(name)

    def write(self, name: str, text: str) -> None:
        self.texts[name] = text

    def delete(self, name: str) -> None:
        self.texts.pop(name, None)
