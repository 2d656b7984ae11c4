"""Schemas as a registry has them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"
FORMATS: Final = (AVRO, JSON, PROTOBUF)


class SchemaError(Exception):
    """A schema that cannot be used: one line without a stop, which says what to do if anything."""


@dataclass(frozen=True, slots=True)
class Registered:
    """One schema. `references` are the schemas that it names, each under that name.

    `subject` and `version` are empty where it was found by its id alone.
    """

    id: int
    format: str
    text: str
    subject: str = ""
    version: int = 0
    references: tuple[tuple[str, Registered], ...] = field(default=(), repr=False)

    @property
    def shown(self) -> str:
        """The schema in a sentence."""
        if not self.subject:
            return f"schema {self.id}"
        return f"version {self.version} of {self.subject} (schema {self.id})"
