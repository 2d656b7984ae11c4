"""What became of a message, in one line: for the list of a key's messages.

It says no more than the message's journey: each part is one of the document's statements, shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ottla.journey.formatting import one_of

Document = dict[str, Any]

MAX_NAMES: Final = 2
"""More groups than these are counted."""
FIELDS: Final = ("state", "transaction", "read", "groups", "delivered")
"""The parts of a journey that make the fate of its message."""
_GROUPS: Final = {
    "read": "read by",
    "passed": "passed by",
    "not_known": "not known of",
    "set_back": "set back:",
    "not_yet": "not yet by",
    "missed": "missed by",
}
"""By state; "passed": it is not known whether by reading it."""
_SAID_BY_DELIVERY: Final = frozenset({"read", "passed"})
"""States of a pipeline's own group that its delivery tells, too."""


def fate_of(journey: Document) -> Document:
    """The statements that `format_fate` puts into words."""
    return {name: journey.get(name) for name in FIELDS}


def format_fate(fate: Document) -> str:
    """The line."""
    return "; ".join(_parts(fate))


def _parts(fate: Document) -> Iterator[str]:
    if fate["state"] != "stored":
        yield str(fate["state"])
    transaction = fate["transaction"]
    if transaction is not None and transaction["state"] != "committed":
        yield {"aborted": "aborted", "open": "in an open transaction"}.get(
            transaction["state"], "the end of its transaction is not known"
        )
    for one in fate["delivered"]:
        yield _delivered(one)
    pipelines = {one["group"] for one in fate["delivered"]}
    is_read = bool(pipelines)
    for state, said in _GROUPS.items():
        names = [
            each["group"]
            for each in fate["read"]
            if _state(each) == state
            and not (state in _SAID_BY_DELIVERY and each["group"] in pipelines)
        ]
        if names:
            is_read = True
            yield f"{said} {_names(names)}"
    groups = fate["groups"]
    if groups is not None and not groups["complete"]:
        yield "some groups are not known"
    elif not is_read:
        yield "no group has committed offsets"


def _state(group: Document) -> str:
    state = str(group["state"])
    return "passed" if state == "read" and group["doubt"] is not None else state


def _names(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) <= MAX_NAMES else f"{len(names)} groups"


def _delivered(one: Document) -> str:
    query, rejected, row = one["query"], one["rejected"], one["row"]
    if one["in_doubt"]:
        return f"not known of pipeline {query}"
    if rejected is not None:
        return f"{'rejected' if rejected['certain'] else 'perhaps rejected'} by pipeline {query}"
    sink = one["sink"]
    if one["delta"] is not None:
        where = one_of("version", one["delta"]["first_version"], one["delta"]["last_version"])
        said = f"in Delta {where}"
    elif sink is not None:
        said = f"into {sink['called']} by pipeline {query}"
    else:
        said = f"delivered by pipeline {query}"
    return said + (_row(row) if row is not None else "")


def _row(row: Document) -> str:
    if row.get("also_in") or row.get("unless_in"):
        return ""  # another partition's message may have its row
    if row["then"] == "current":
        return ", the row now"
    by = row["by"]
    if row["then"] is None or by is None:
        return ", no row" if row["then"] == "gone" else ""
    return f", {row['then']} by offset {by['offset']}"
