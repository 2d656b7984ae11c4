"""A replay that has begun, noted in the checkpoint.

`<checkpoint>/ottla-replay.json`, one JSON object, replaced as a whole:

    {"version": 1, "id": "<of this replay>", "number": n, "rows": k, "outcomes": m,
     "begun_ms": when, in ms since 1970}

It is written when `<checkpoint>/ottla-replay/` has all that the replay writes, as Parquet:

    selected/  the rejected rows, with the bytes of their records
    rows/      what the pipeline makes of them: `rows` of these fit the target
    outcomes/  what `<target>_rejected` gets, `outcomes` rows

and deleted when both targets have it. So what a replay writes is computed once, and a kill leaves
one of these: a folder without a note, which the next replay replaces; or a note, whose replay the
next one finishes first. Both targets know the replay by its id, and skip what they have.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from ottla.pipelines.checkpoint.document import Document

FOLDER: Final = "ottla-replay"
SELECTED: Final = f"{FOLDER}/selected"
ROWS: Final = f"{FOLDER}/rows"
OUTCOMES: Final = f"{FOLDER}/outcomes"


@dataclass(frozen=True, slots=True)
class Begun:
    """A replay whose rows are kept in the checkpoint."""

    id: str
    number: int
    rows: int
    outcomes: int
    begun_ms: int


def _parse(document: dict[str, Any]) -> Begun:
    return Begun(
        document["id"],
        int(document["number"]),
        int(document["rows"]),
        int(document["outcomes"]),
        int(document["begun_ms"]),
    )


NOTE: Final = Document(
    f"{FOLDER}.json",
    _parse,
    asdict,
    instead="delete it, after which rows of the replay that was cut off may be sent twice",
)
