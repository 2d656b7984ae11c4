"""Schemas as a registry has them, and which of them a pipeline asks for. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ottla.pipelines.errors import PipelineError

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"
FORMATS: Final = (AVRO, JSON, PROTOBUF)

_WORD: Final = re.compile(
    r"registry(?::(?P<subject>[^@#\s]+))?(?:@(?P<version>[1-9]\d*))?(?:#(?P<message>[\w.]+))?"
)


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


@dataclass(frozen=True, slots=True)
class Wanted:
    """The schema by which a key or value is read: a version of a subject; 0: the latest.

    `message` is the message of a Protobuf schema; "": the one that the schema is about.
    """

    subject: str
    version: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the registry has: the schema to read by, the others, and the ids that it lacks."""

    reader: Registered
    others: tuple[Registered, ...] = ()
    missing: frozenset[int] = frozenset()


def is_wanted(schema: object) -> bool:
    """Tell whether the argument `schema` (or `key_schema`) names a schema of the registry."""
    return isinstance(schema, str) and re.match(r"\s*registry\b", schema) is not None


def read_wanted(schema: str, topic: str, column: str) -> Wanted:
    """Return what `registry`, `registry:SUBJECT` or `registry:SUBJECT@VERSION` asks for, each
    with `#MESSAGE` after it for a message of Protobuf.

    Without a subject it is the one of Kafka's TopicNameStrategy, `<topic>-key` or `<topic>-value`.
    Raises PipelineError.
    """
    match = _WORD.fullmatch(schema.strip())
    if match is None:
        name = "key_schema" if column == "key" else "schema"
        raise PipelineError(
            f"{name}={schema!r}: write 'registry' for the latest schema of {topic}-{column}, or "
            "'registry:SUBJECT', 'registry:SUBJECT@VERSION', and '#MESSAGE' after it for a message "
            "of Protobuf"
        )
    return Wanted(
        match["subject"] or f"{topic}-{column}", int(match["version"] or 0), match["message"] or ""
    )
