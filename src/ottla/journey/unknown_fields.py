"""Which of a message's fields a pipeline's schema lacks, from what its last commit says. Pure.

"unknown_fields": null (none that the pipeline has seen), or
                  {"did": "drop", "keep" or "reject": what becomes of them,
                   "fields": those that this message has: "x", "n.x", "a[].x", "m{}.x"}
"""

import json
from typing import Any

from ottla.journey.moment import Document
from ottla.timelines.delivery_metadata import UnknownFields


def unknown_fields_of(value: bytes | None, unknown: UnknownFields | None) -> Document | None:
    """What the journey says of a message with this value; null where the value is no JSON."""
    if value is None or unknown is None:
        return None
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return None
    found = [name for name in unknown.fields if _has(document, name)]
    return {"did": unknown.did, "fields": found} if found else None


def _has(value: Any, path: str) -> bool:
    """Whether a document has the field at a path. A name may have the marks of a path in it."""
    if isinstance(value, dict) and path in value:
        return True
    if path.startswith("[]."):
        return isinstance(value, list) and any(_has(one, path[3:]) for one in value)
    if path.startswith("{}."):
        return isinstance(value, dict) and any(_has(one, path[3:]) for one in value.values())
    if path.startswith("."):
        return isinstance(value, dict) and _has(value, path[1:])
    if not isinstance(value, dict):
        return False
    return any(
        path.startswith(name) and _has(value[name], path[len(name) :]) for name in value if name
    )
