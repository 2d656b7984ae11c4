"""By what the batches of a query are decided: which rows the target gets, and which are rejected.

`<checkpoint>/ottla-decided.json`, one JSON object, replaced as a whole:

    {"version": 1, "id": "<query id>", "query": "<digest>",
     "sources": {"<topic>": {"schemas": {"<column>": <type>}, "unknown_fields": "drop",
                             "format": "plain"}},
     "asked": {"conditions": [["<SQL>", "<reason>"]], "added": [["<column>", "<type>"]]}}

The rows of a batch and its rejected rows are two commits. A kill between them leaves a batch that
the next start finds in the target, and whose rejected rows it must find again: by the schemas, the
constraints and the expectations of the run that wrote the batch, not by those of now. Otherwise a
row that was refused then and fits now would be in neither, and one that fits no longer in both.

So the note is written before a run's first batch, where it says something else, and only if the
target does not have that batch. It is therefore always true of a batch that the target has.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.checkpoint.document import Document
from ottla.pipelines.spark.jvm.plan import described
from ottla.pipelines.target.constraints import Asked, asked_of, read_asked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.source.source import Source

FILE: Final = "ottla-decided.json"
_OF_THIS_SESSION: Final = re.compile(
    r"#\d+L?|@[0-9a-f]+|(?<=CTERelationDef )\d+|(?<=CTERelationRef )\d+|(?<=\], )\d+$"
    r"|_ottla_[0-9a-f]{16}|_\d+",
    re.MULTILINE,
)
"""What a plan's text has otherwise at another start of the same query: the numbers of columns,
objects, queries, frames and lambdas, and the name that no record has (`source.parse`)."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What decides about the rows of a batch.

    `sources`: of each topic whose rows may not parse, the `schemas` as JSON, `unknown_fields`
    and the `format` of its values.
    `query`: a digest of how the rows are computed. `asked`: what the rows must fulfil.
    """

    sources: Mapping[str, Mapping[str, Any]]
    query: str
    asked: Asked


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision about the batches of a query from one on."""

    query_id: str
    decision: Decision


def decision_of(frame: DataFrame, marked: DataFrame, sources: Sequence[Source]) -> Decision:
    """Return what decides about the rows of a query. `marked`: the frame with what is asked."""
    schemas = {
        source.name: {
            "schemas": {name: kind.jsonValue() for name, kind in source.schemas.items()},
            "unknown_fields": source.unknown_fields,
            "format": source.source_format,
        }
        for source in sources
        if source.can_reject
    }
    return Decision(schemas, digest("\n".join(described(frame))), asked_of(marked))


def digest(plan: str) -> str:
    """Return a digest of a plan's text that each start of the same query gives. Pure."""
    return hashlib.sha256(_OF_THIS_SESSION.sub("", plan).encode()).hexdigest()[:16]


def wrong_query(
    former: Decision, now: Decision, checkpoint: str, number: int, target: str
) -> str | None:
    """Return why the rejected rows of a batch that the target has cannot be found, None where they
    can: rows that were refused for a condition are computed by the query. Pure.
    """
    if not former.asked.conditions or former.query == now.query:
        return None
    return refuse(former, checkpoint, number, target)


def refuse(former: Decision, checkpoint: str, number: int, target: str) -> str:
    """Return that the rejected rows of a batch cannot be found, and what to do. Pure."""
    return (
        f"Batch {number} of the checkpoint {checkpoint} is in {target}, and its rejected rows may "
        "not be: a run was cut off between the two. Which rows were refused then "
        f"({former.asked.conditions[0].reason}, say) only the query and the schema of that run "
        "tell, and these are others now. Start it once as it was, with the trigger availableNow; "
        f"or delete {FILE} in the checkpoint to have the rows of that batch judged by the new ones"
    )


def _build(decided: Decided) -> dict[str, Any]:
    decision = decided.decision
    return {
        "id": decided.query_id,
        "query": decision.query,
        "sources": decision.sources,
        "asked": decision.asked.document(),
    }


def _parse(document: dict[str, Any]) -> Decided:
    sources = {
        str(name): {
            "schemas": dict(of["schemas"]),
            "unknown_fields": str(of["unknown_fields"]),
            "format": str(of.get("format", "plain")),
        }
        for name, of in document["sources"].items()
    }
    decision = Decision(sources, str(document["query"]), read_asked(document["asked"]))
    return Decided(str(document["id"]), decision)


DECIDED: Final = Document(
    FILE,
    _parse,
    _build,
    instead="delete it to have the rows of a batch that was cut off judged as now",
)
