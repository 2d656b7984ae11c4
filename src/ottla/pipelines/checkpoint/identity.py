"""What a checkpoint belongs to, kept beside Spark's own files in it.

`<checkpoint>/ottla.json`, one JSON object:

    {"version": 1, "cluster": "<cluster id>", "topics": {"<name>": "<topic id>"},
     "table": {"id": "<Delta's table id>", "location": "<folder>"}, "delivery": "<its name>",
     "keys": ["<column>"], "time_zone": "<the session's>", "after": ["<query id>"],
     "newest": {"<topic>": ["<query id>", <batch>]}, "since": "<id of a commit>",
     "settings": {"<name>": "<the session's>"},
     "replacing": null or {"number": n, "starting": {"<name>": {"<partition>": offset}}}}

It is replaced as a whole, so a crash leaves the former record or the new one. `replacing` is set
before the state of a query is moved to `replaced-<n>/` and cleared when the next query's first
offsets are written; a start that finds it set finishes that move. `keys` is empty for a table
that is appended to. `keys`, `time_zone` and `settings` (by which Spark makes values) are missing in
a record of a version that did not keep them. `after` has the queries that this one continues, which
had other checkpoints or are moved away; `newest` is the newest commit of each topic in the table
when the query was new, and `since` the newest commit of all then, where the table may forget some.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ottla.pipelines.checkpoint.document import Document

FILE: Final = "ottla.json"

Offsets = dict[str, dict[int, int]]  # topic -> partition -> next offset


@dataclass(frozen=True, slots=True)
class Replacing:
    """A move of the query's state that has begun: where to, and where the next query starts."""

    number: int
    starting: Offsets


@dataclass(frozen=True, slots=True)
class Identity:
    """What a checkpoint belongs to."""

    cluster: str
    topics: dict[str, str]  # name -> id
    table_id: str
    table_location: str
    delivery: str
    replacing: Replacing | None = None
    keys: tuple[str, ...] | None = None  # of the table's rows; None: not known
    time_zone: str | None = None  # of times that name none; None: not known
    after: tuple[str, ...] = ()
    newest: dict[str, tuple[str, int]] | None = None  # None: not known
    since: str | None = None  # empty: there was no commit yet; None: not known
    settings: dict[str, str] | None = None  # of the session, by which values are made


def _build(identity: Identity) -> dict[str, Any]:
    moving = identity.replacing
    document: dict[str, Any] = {
        "cluster": identity.cluster,
        "topics": identity.topics,
        "table": {"id": identity.table_id, "location": identity.table_location},
        "delivery": identity.delivery,
        "replacing": moving and {"number": moving.number, "starting": moving.starting},
    }
    later = {
        "keys": identity.keys,
        "time_zone": identity.time_zone,
        "after": identity.after or None,
        "newest": identity.newest,
        "since": identity.since,
        "settings": identity.settings,
    }
    return document | {name: value for name, value in later.items() if value is not None}


def _parse(document: dict[str, Any]) -> Identity:
    return Identity(
        document["cluster"],
        {str(name): str(topic_id) for name, topic_id in document["topics"].items()},
        document["table"]["id"],
        document["table"]["location"],
        document["delivery"],
        _read_replacing(document["replacing"]),
        _read_keys(document.get("keys")),
        document.get("time_zone"),
        tuple(str(query_id) for query_id in document.get("after", ())),
        _read_newest(document.get("newest")),
        document.get("since"),
        _read_settings(document.get("settings")),
    )


def _read_replacing(document: Any) -> Replacing | None:
    return document and Replacing(int(document["number"]), read_offsets(document["starting"]))


def _read_keys(columns: Any) -> tuple[str, ...] | None:
    return None if columns is None else tuple(str(column) for column in columns)


def _read_settings(document: Any) -> dict[str, str] | None:
    return None if document is None else {str(name): str(value) for name, value in document.items()}


def _read_newest(document: Any) -> dict[str, tuple[str, int]] | None:
    if document is None:
        return None
    return {topic: (str(query_id), int(batch)) for topic, (query_id, batch) in document.items()}


def read_offsets(document: dict[str, dict[str, int]]) -> Offsets:
    """Return offsets with their partitions as numbers; JSON has them as text."""
    return {
        topic: {int(partition): int(offset) for partition, offset in partitions.items()}
        for topic, partitions in document.items()
    }


IDENTITY_DOCUMENT: Final = Document(
    FILE,
    _parse,
    _build,
    if_damaged="Restore it, or delete it to adopt this checkpoint for the topics and the table as "
    "they are now",
    indent=1,
)
