"""Rejected rows that are still to be written, kept in the checkpoint.

`<checkpoint>/ottla-rejects.json`, one JSON object, replaced as a whole:

    {"version": 1, "due": [{"query": "<query id>", "batch": n, "once": true,
      "metadata": "<userMetadata of batch n>",
      "parts": [{"topic": "<name>", "id": "<topic id>", "schemas": {"<column>": <type>},
                 "unknown_fields": "drop", "keep" or "reject", "format": "plain" or "debezium",
                 "first": {"<partition>": offset}, "end": {"<partition>": offset},
                 "count": rows or null}]}]}

An entry holds the batches of one query up to `batch`; they are written in one commit. A batch is
noted before Spark counts it as done, so a crash leaves a note for rows that are not written, or
for rows that are: the table knows the batch of its last commit and skips these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.checkpoint.document import Document
from ottla.pipelines.source.debezium import SourceFormat
from ottla.pipelines.source.words import UnknownFields

if TYPE_CHECKING:
    from ottla.pipelines.spark.jvm.files import Files

FILE: Final = "ottla-rejects.json"


@dataclass(frozen=True, slots=True)
class Part:
    """A range of a topic that holds rejected rows, or may: `count` is None where not known.

    `schemas` gives the types of key and value, as Spark's JSON, by which the rows were rejected;
    `unknown_fields` whether fields that they lack were a reason; `source_format` is that of values.
    """

    topic: str
    topic_id: str
    schemas: dict[str, Any]
    first: dict[int, int]
    end: dict[int, int]
    count: int | None
    unknown_fields: UnknownFields = "drop"
    source_format: SourceFormat = "plain"


@dataclass(frozen=True, slots=True)
class PendingReject:
    """The rejected rows of one query's batches up to `batch`, for one commit."""

    query_id: str
    batch: int
    once: bool
    metadata: str
    parts: tuple[Part, ...]


def write_pending(files: Files, due: list[PendingReject]) -> None:
    """Note what is to be written; an empty list removes the note."""
    if due:
        _NOTE.write(files, due)
    else:
        files.delete(FILE)


def read_pending(files: Files) -> list[PendingReject]:
    """Return what an earlier run left to be written. Raises PipelineError for a damaged note."""
    return _NOTE.read(files) or []


def _build(due: list[PendingReject]) -> dict[str, Any]:
    entries = [
        {
            "query": one.query_id,
            "batch": one.batch,
            "once": one.once,
            "metadata": one.metadata,
            "parts": [
                {
                    "topic": part.topic,
                    "id": part.topic_id,
                    "schemas": part.schemas,
                    "unknown_fields": part.unknown_fields,
                    "format": part.source_format,
                    "first": part.first,
                    "end": part.end,
                    "count": part.count,
                }
                for part in one.parts
            ],
        }
        for one in due
    ]
    return {"due": entries}


def _parse(document: dict[str, Any]) -> list[PendingReject]:
    return [
        PendingReject(
            one["query"],
            int(one["batch"]),
            bool(one["once"]),
            one["metadata"],
            tuple(_read_part(part) for part in one["parts"]),
        )
        for one in document["due"]
    ]


def _read_part(part: dict[str, Any]) -> Part:
    return Part(
        part["topic"],
        part["id"],
        part["schemas"],
        {int(partition): int(offset) for partition, offset in part["first"].items()},
        {int(partition): int(offset) for partition, offset in part["end"].items()},
        None if part["count"] is None else int(part["count"]),
        part.get("unknown_fields", "drop"),
        part.get("format", "plain"),
    )


_NOTE: Final = Document(
    FILE,
    _parse,
    _build,
    instead="delete it to leave out the rejected rows that it names",
)
