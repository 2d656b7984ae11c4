"""Where a pipeline's rows go, as its commits say it, and as the name of its deliveries keeps it.

A commit says `"sink": {"kind": "postgresql", "place": "public.flights in postgresql://db/lake",
"rows": "upsert", "order": "timestamp", "deletes": "remove", "key": "message", "called":
"PostgreSQL"}` (see `delivery_metadata.py`). The name of a delivery's step has one text for it: the
place alone for a Delta table that is appended to, else JSON. Pure.
"""

import json
import re
from typing import Final, NamedTuple

DELTA: Final = "delta"
DELTA_CALLED: Final = "Delta"
ROWS: Final = ("append", "upsert", "history")
ORDERS: Final = ("offset", "timestamp", "column")
DELETES: Final = ("skip", "remove", "mark")
PLACES: Final = ("table", "folder", "topic")
MAX_PLACE_CHARS: Final = 1024
MAX_CALLED_CHARS: Final = 64
_KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
"""Each sink names its own kind; which ones there are is not known here."""


class Destination(NamedTuple):
    """A table, a folder of files, a topic, or what another sink writes to.

    `rows`: what a record does to the table. `order`: which record of a key is the last, by its
    offset, its timestamp or a column. `deletes`: what a tombstone does. `by_message_key`: the
    table has a row for each key of the topic's messages. `called`: what people call such a place,
    "" where the commit does not say it; `place_is`: one of PLACES.
    """

    kind: str
    place: str
    rows: str = "append"
    order: str = "offset"
    deletes: str = "skip"
    by_message_key: bool = False
    called: str = ""
    place_is: str = PLACES[0]

    def text(self) -> str:
        """The text in the name of a step."""
        if self._replace(called=DELTA_CALLED) == _delta(self.place):
            return self.place
        document = {
            "kind": self.kind,
            "place": self.place,
            "rows": self.rows,
            "order": self.order,
            "deletes": self.deletes,
            "key": "message" if self.by_message_key else None,
            "called": self.called,
            "place_is": self.place_is,
        }
        return json.dumps(document, separators=(",", ":"))


def read_destination(said: object) -> Destination | None:
    """The destination of a commit's `sink`, or None if it is none. What is unknown is left out."""
    if not isinstance(said, dict):
        return None
    kind, place = said.get("kind"), said.get("place")
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        return None
    if not isinstance(place, str) or not place:
        return None
    words = (("rows", ROWS), ("order", ORDERS), ("deletes", DELETES), ("place_is", PLACES))
    rows, order, deletes, place_is = (
        value if (value := said.get(name)) in allowed else allowed[0] for name, allowed in words
    )
    by_key, called = said.get("key") == "message", said.get("called")
    return Destination(
        kind,
        place[:MAX_PLACE_CHARS],
        rows,
        order,
        deletes,
        by_key,
        called[:MAX_CALLED_CHARS] if isinstance(called, str) else "",
        place_is,
    )


def destination_of(text: str) -> Destination | None:
    """The destination of a step's name; None where the delivery named none."""
    if text.startswith("{"):
        try:
            return read_destination(json.loads(text))
        except (ValueError, RecursionError):
            return None
    return _delta(text) if text else None


def _delta(place: str) -> Destination:
    return Destination(DELTA, place, called=DELTA_CALLED)
