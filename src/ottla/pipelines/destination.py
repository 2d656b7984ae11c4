"""`Destination`: where a pipeline's rows go, as it says it to the brokers for the journey. Pure.

The metadata of a commit has it as

    "sink": {"kind": "postgresql", "place": "public.flights in postgresql://db/lake",
             "version": 9, "rows": "upsert", "order": "timestamp", "deletes": "remove",
             "key": "message", "called": "PostgreSQL"}

`kind` is the sink's word for what it writes; `called` is what people call that, and `place_is`
whether the place is a "table" (where it is absent), a "folder" or a "topic". `rows`: "append",
"upsert" or "history". `order`: which record of a key is the last, by "offset", "timestamp" or a
"column"; `deletes`: what a tombstone does, "skip", "remove" or "mark"; `key` is "message" where the
table has a row for each key of the topic's messages: all three only for tables with keys. `version`
is that of the table, or the number of the list of a folder of files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

MAX_PLACE_CHARS: Final = 1_024


@dataclass(frozen=True, slots=True)
class Destination:
    """A table, a folder of files, or a topic."""

    kind: str
    place: str
    rows: str = "append"
    order: str = "offset"
    deletes: str = "skip"
    by_message_key: bool = False
    called: str = ""
    place_is: str = "table"

    def document(self, version: int | None) -> dict[str, Any]:
        """Return it as a commit has it."""
        document: dict[str, Any] = {"kind": self.kind, "place": self.place[:MAX_PLACE_CHARS]}
        if version is not None:
            document["version"] = version
        if self.rows != "append":
            document |= {"rows": self.rows, "order": self.order, "deletes": self.deletes}
            if self.by_message_key:
                document["key"] = "message"
        if self.called:
            document["called"] = self.called
        if self.place_is != "table":
            document["place_is"] = self.place_is
        return document


def read_destination(document: Any) -> Destination | None:
    """Return the destination of a commit, None where it has none."""
    if not isinstance(document, dict):
        return None
    texts = {
        name: document[name]
        for name in ("kind", "place", "rows", "order", "deletes", "called", "place_is")
        if isinstance(document.get(name), str)
    }
    if not {"kind", "place"} <= set(texts):
        return None
    return Destination(**texts, by_message_key=document.get("key") == "message")
