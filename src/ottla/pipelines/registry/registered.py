"""Which schemas a pipeline asks a registry for, and gets. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ottla.pipelines.errors import PipelineError
from ottla.registry.registered import Registered

_WORD: Final = re.compile(
    r"registry(?::(?P<subject>[^@#\s]+))?(?:@(?P<version>[1-9]\d*))?(?:#(?P<message>[\w.]+))?"
)


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
