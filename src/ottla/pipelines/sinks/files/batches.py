"""Which batch is which in a folder of files. Pure but for the file's format.

`<target>/_ottla_folder`, one JSON object, replaced as a whole:

    {"version": 1, "id": "<of this folder>", "format": "parquet", "partition_by": ["<column>"],
     "schema": <the columns, as Spark's JSON>,
     "query": "<query id>", "batch": b, "number": n, "ends": {"<batch>": "<digest>"},
     "replay": null or {"id": "<of a replay>", "number": n}}

Spark's file sink numbers batches in `<target>/_spark_metadata`, skips a number that it has, and
fails where a number is missing (`CompactibleFileStreamLog` joins its files). Numbers of a query's
batches are not like that: a new query begins at 0 again, and a batch without rejected rows is none
of `<target>_rejected`. So `_ottla_folder` says that batch b of the query has the number n, and
later batches follow without a gap. It is written before each batch, because Spark's lists have no
room for the offsets at which a batch ends: `ends` has a digest of them for the last MAX_ENDS
batches. A crash after that leaves the note of a batch that is not there yet; the batch gets the
same number when it is repeated.

A replay of rejected rows takes the next number, and the query's next batch the one after it. Both
are noted at once, before the replay is written: whether its number is in Spark's lists or not, the
query's last batch in the folder is the same.

Names that begin with `_` are not data for Spark and other readers of Hadoop's file systems; this
one has no ending, so that a reader of `*.json` does not take it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from ottla.pipelines.checkpoint.document import Document

FILE: Final = "_ottla_folder"
MAX_ENDS: Final = 2
"""The batch that is being written, and the one before it."""


@dataclass(frozen=True, slots=True)
class FolderState:
    """What `_ottla_folder` says. `query` is empty in a folder without a batch."""

    id: str
    format: str
    partition_by: tuple[str, ...]
    schema: dict[str, Any]
    query: str = ""
    batch: int = 0
    number: int = 0
    ends: dict[int, str] = field(default_factory=dict)
    replay: tuple[str, int] | None = None

    def numbered(self, query: str, batch: int, number: int) -> FolderState:
        """Return the state in which this batch has this number."""
        ends = self.ends if query == self.query else {}
        # A replay that was noted and not written has lost its number to this batch.
        kept = self.replay if self.replay and self.replay[1] < number else None
        return replace(self, query=query, batch=batch, number=number, ends=ends, replay=kept)

    def replayed(self, replay: str, number: int, latest: int) -> FolderState:
        """Return the state in which a replay has this number, the next one in the folder."""
        last = self.last_batch(self.query, latest)
        following = 0 if last is None else last + 1
        return replace(self, batch=following, number=number + 1, replay=(replay, number))

    def ended(self, batch: int, ends: str) -> FolderState:
        """Return the state that notes the digest of where a batch of its query ends."""
        kept = sorted((self.ends | {batch: ends}).items())[-MAX_ENDS:]
        return replace(self, ends=dict(kept) | {batch: ends})

    def last_batch(self, query: str, latest: int) -> int | None:
        """Return the last batch of a query that is in the folder, None when none is known.

        `latest`: the last number in `_spark_metadata`, -1 for none.
        """
        if query != self.query:
            return None
        last = self.batch + max(latest - self.number, -1)
        return last if last >= 0 else None

    def number_in(self, query: str, batch: int, latest: int) -> int | None:
        """Return the number of a query's batch, None where the folder does not have it as known."""
        if query != self.query or batch < self.batch:
            return None
        number = self.number + batch - self.batch
        return number if number <= latest else None


def _parse(document: dict[str, Any]) -> FolderState:
    return FolderState(
        document["id"],
        document["format"],
        tuple(document["partition_by"]),
        dict(document["schema"]),
        document["query"],
        int(document["batch"]),
        int(document["number"]),
        {int(batch): str(ends) for batch, ends in document.get("ends", {}).items()},
        _read_replay(document.get("replay")),
    )


def _read_replay(document: Any) -> tuple[str, int] | None:
    return None if document is None else (str(document["id"]), int(document["number"]))


def _build(state: FolderState) -> dict[str, Any]:
    replay = state.replay and {"id": state.replay[0], "number": state.replay[1]}
    return asdict(state) | {"replay": replay}


STATE: Final = Document(FILE, _parse, _build, instead="write to a new folder")


def number_of(
    state: FolderState, latest: int, query: str, batch: int, *, once: bool
) -> tuple[int | None, bool]:
    """Return the number to write a batch under, and whether to note that number first.

    None: the folder has the batch. `latest`: the last number in the folder, -1 for none.
    """
    if query == state.query:
        number = state.number + batch - state.batch
        is_there = batch < state.batch or number <= latest
        if is_there and once:
            return None, False
        if not is_there and number == latest + 1:
            return number, False
    return latest + 1, True
