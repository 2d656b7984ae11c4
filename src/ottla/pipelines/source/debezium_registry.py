"""Events of Debezium in a schema registry's framing: how they are read. Pure.

The schema of the event is registered, and has the columns of the database's table in `before` and
`after`. A new version of it is read as that of any other value.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.framed import Framed
from ottla.registry.registered import AVRO, JSON


def framed_envelope(framed: Framed) -> Framed:
    """Return how events in a registry's framing are read. Raises PipelineError for other values."""
    if framed.format not in (AVRO, JSON):
        raise PipelineError(
            f"source_format='debezium' is for events as Avro or JSON, and the registry's schema is "
            f"{framed.format}: select the row from the envelope, value.after.*, and "
            "value.op = 'd' AS tombstone"
        )
    document = json.loads(framed.type)
    fields = {one["name"]: one for one in document["fields"]} if framed.is_object else {}
    kinds = {name: one["type"] for name, one in fields.items()}
    rows = [kinds.get("before"), kinds.get("after")]
    if not all(isinstance(kind, dict) and kind["type"] == "struct" for kind in rows):
        raise PipelineError(
            "source_format='debezium': the registry's schema of the value has no before and after "
            f"that are rows, so it is no event of Debezium: it has {', '.join(fields) or 'none'}"
        )
    if kinds.get("op") != "string":
        raise PipelineError(
            "source_format='debezium': the registry's schema of the value has no text op, so it is "
            "no event of Debezium"
        )
    # Of a deletion many databases send the key alone.
    fields["before"]["type"] = _nullable(kinds["before"])
    if _nullable(kinds["after"]) != fields["before"]["type"]:
        raise PipelineError(
            "source_format='debezium': the fields before and after of the registry's schema are "
            "rows of different types"
        )
    return replace(framed, type=json.dumps(document))


def _nullable(kind: Any) -> Any:
    """Return a struct, as Spark's JSON has it, without NOT NULL at its first level."""
    return kind | {"fields": [one | {"nullable": True} for one in kind["fields"]]}
