"""`Framed`: how a key or value with a schema's id is read, as a plan made at the start. Pure.

All data is read as one type, that of the schema to read by. Each other schema is a branch that
reads its own data as that type, or a reason why that is impossible. The plan goes into the
checkpoint beside rejected rows that wait (`rejects.pending`), so it is plain JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.registered import Fetched
from ottla.registry.registered import Registered

FRAMED: Final = "framed"
MAX_MISSING: Final = 1_000
"""Ids that the registry does not have; with more of them the data is not framed at all."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The data of one schema. `writer` is what reads it: an Avro schema, the indexes and names of
    Protobuf's messages, or "".

    `refused` is why it cannot be read, "" where it can.
    """

    id: int
    writer: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Framed:
    """A key or value in Confluent's framing.

    `reader` is what all data is read as: an Avro schema, a Protobuf message, "" for JSON. `type` is
    Spark's JSON of the column's type. `missing` are ids that the registry lacks.
    """

    format: str
    type: str
    branches: tuple[Branch, ...]
    reader: str = ""
    missing: tuple[int, ...] = ()

    @property
    def is_object(self) -> bool:
        """Whether the column is a struct."""
        kind = json.loads(self.type)
        return isinstance(kind, dict) and kind.get("type") == "struct"

    def jsonValue(self) -> dict[str, Any]:  # noqa: N802 - as the types of Spark have it
        """Return the plan as JSON."""
        return {
            FRAMED: self.format,
            "type": self.type,
            "branches": [[one.id, one.writer, one.refused] for one in self.branches],
            "reader": self.reader,
            "missing": list(self.missing),
        }

    def json(self) -> str:
        """Return the plan as JSON text."""
        return json.dumps(self.jsonValue(), sort_keys=True)


def read_framed(document: Any) -> Framed | None:
    """Return the plan that `jsonValue` gave, None for the JSON of a type of Spark's.

    Raises KeyError, TypeError or ValueError for a plan that is damaged.
    """
    if not isinstance(document, dict) or FRAMED not in document:
        return None
    return Framed(
        document[FRAMED],
        document["type"],
        tuple(Branch(int(id_), writer, refused) for id_, writer, refused in document["branches"]),
        document["reader"],
        tuple(map(int, document["missing"])),
    )


def branches_of(
    fetched: Fetched,
    writer_of: Callable[[Registered], str],
    conflict_of: Callable[[Registered], str | None],
) -> tuple[Branch, ...]:
    """Return a branch for each schema, the one to read by first.

    `writer_of` gives what reads the data of a schema; `conflict_of` why the schema to read by
    cannot read it, None where it can. Raises PipelineError for more than MAX_MISSING ids that
    the registry does not have.
    """
    reader = fetched.reader
    if len(fetched.missing) > MAX_MISSING:
        raise PipelineError(
            f"More than {MAX_MISSING} schema ids in the data of {reader.subject} are not in the "
            "registry: the data is not framed, or comes from another registry"
        )
    found = [Branch(reader.id, writer_of(reader))]
    seen = {reader.id}
    for one in fetched.others:
        if one.id in seen:
            continue
        seen.add(one.id)
        if one.format != reader.format:
            words: str | None = f"it is {one.format}, not {reader.format}"
        else:
            words = conflict_of(one)
        if words:
            refused = f"{reader.shown} cannot read data of {one.shown}: {words}"
            found.append(Branch(one.id, "", refused))
        else:
            found.append(Branch(one.id, writer_of(one)))
    return tuple(found)
