"""What a checkpoint belongs to, kept beside Spark's own files in it.

`<checkpoint>/ottla.json`, one JSON object:

    {"version": 1, "cluster": "<cluster id>", "topics": {"<name>": "<topic id>"},
     "table": {"id": "<Delta's table id>", "location": "<folder>"}, "delivery": "<its name>",
     "keys": ["<column>"], "time_zone": "<the session's>", "after": ["<query id>"],
     "newest": {"<topic>": ["<query id>", <batch>]},
     "replacing": null or {"number": n, "starting": {"<name>": {"<partition>": offset}}}}

It is replaced as a whole, so a crash leaves the former record or the new one. `replacing` is set
before the state of a query is moved to `replaced-<n>/` and cleared when the next query's first
offsets are written; a start that finds it set finishes that move. `keys` is empty for a table
that is appended to. `keys` and `time_zone` are missing in a record of a version that did not keep
them. `after` has the queries that this one continues, which had other checkpoints or are moved
away; `newest` is the newest commit of each topic in the table when the query was new.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from ottla.pipelines.errors import PipelineError

FILE: Final = "ottla.json"
VERSION: Final = 1

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

    def text(self) -> str:
        """Return the record as it is kept."""
        replacing = self.replacing and {
            "number": self.replacing.number,
            "starting": self.replacing.starting,
        }
        document: dict[str, Any] = {
            "version": VERSION,
            "cluster": self.cluster,
            "topics": self.topics,
            "table": {"id": self.table_id, "location": self.table_location},
            "delivery": self.delivery,
            "replacing": replacing,
        }
        if self.keys is not None:
            document["keys"] = self.keys
        if self.time_zone is not None:
            document["time_zone"] = self.time_zone
        if self.after:
            document["after"] = self.after
        if self.newest is not None:
            document["newest"] = self.newest
        return json.dumps(document, indent=1) + "\n"


def read_identity(text: str, place: str) -> Identity:
    """Return the record that a text holds; `place` names the file in errors.

    Raises PipelineError for a text that is not a record.
    """
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise PipelineError(
                f"{place} was written by another version of Ottla (version {document['version']}, "
                f"not {VERSION}). Use that version, or a new checkpoint"
            )
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
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PipelineError(
            f"{place} is damaged. Restore it, or delete it to adopt this checkpoint for the "
            "topics and the table as they are now"
        ) from error


def _read_replacing(document: Any) -> Replacing | None:
    return document and Replacing(int(document["number"]), read_offsets(document["starting"]))


def _read_keys(columns: Any) -> tuple[str, ...] | None:
    return None if columns is None else tuple(str(column) for column in columns)


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
