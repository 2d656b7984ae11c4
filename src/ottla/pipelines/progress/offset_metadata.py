"""What a running pipeline keeps on the broker about itself, in the metadata of its commits. Pure.

The metadata of a commit is JSON of at most 4,096 bytes. On every partition it is

    {"ottla.pipeline": 1, "query": "flights", "id": "<query id>", "batch": 7,
     "delta": {"table": "/lake/flights", "version": 9},
     "sink": {"kind": "delta", "place": "/lake/flights", "version": 9},
     "rejects": {"kept": "flights_rejected", "reasons": [...], "ranges": [[4200, 4210, 0]]},
     "unknown": {"did": "drop", "fields": ["delay_min"]},
     "isolation": "read_committed",
     "from": 4200}

(`delta` only for a Delta table, `sink` as in `pipelines.destination`, `rejects` as in
`rejected_offsets` and only where the batch rejected something, `unknown` as in `unknown_fields` and
only where the run has seen such a field, `isolation` only if the batch has no records of aborted
transactions, `from` only for the query's first batch: the partition's first offset in it), and on
the lowest partition of the pipeline's first topic it has the run's state as well:

    "run": {"id": "9f2c41d0", "state": "running", "host": "etl-3", "pid": 4711,
            "since_ms": ..., "seen_ms": ..., "every_s": 10, "batch_at_ms": ..., "batch_ms": 410,
            "rows": 12000, "rows_per_s": 29268.3, "rejected": 3, "rejected_reason": "...",
            "unknown": 7, "unknown_fields": "delay_min", "dropped": 0, "truncated": 0,
            "failure": "...", "by": "..."}

`seen_ms` is renewed at least every `every_s` seconds, so a run whose `seen_ms` is much older has
been killed or cannot reach the broker. Fields that are not known are left out.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, Literal, get_args

from ottla.pipelines.destination import Destination, read_destination
from ottla.pipelines.kafka.committed import read_document
from ottla.pipelines.kafka.settings import READ_COMMITTED
from ottla.pipelines.progress.group import MAX_METADATA_BYTES
from ottla.pipelines.rejected_offsets import RejectedOffsets
from ottla.pipelines.unknown_fields import UnknownFields, read_unknown_fields

VERSION: Final = 1
MAX_FAILURE_CHARS: Final = 1_000
MAX_REASON_CHARS: Final = 200
_OPTIONAL_TEXTS: Final = ("failure", "by", "rejected_reason", "unknown_fields")
MISSED_BEFORE_STALE: Final = 3

State = Literal["starting", "running", "retrying", "stopped", "finished", "failed"]
ENDED: Final = frozenset({"stopped", "finished", "failed"})


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a pipeline. Times are ms since 1970 by the clock of the machine it runs on."""

    id: str
    state: State
    host: str
    pid: int
    since_ms: int
    seen_ms: int
    every_s: int
    batch_at_ms: int | None = None  # when the last batch with rows ended
    batch_ms: int | None = None  # how long that batch took
    rows: int | None = None  # rows read in this run
    rows_per_s: float | None = None  # of the last batch
    rejected: int | None = None  # rows rejected in this run
    rejected_reason: str | None = None  # the most frequent one of them
    unknown: int | None = None  # rows with fields that the schema lacks
    unknown_fields: str | None = None  # the names of some of them
    dropped: int | None = None  # rows that did not fulfil an expectation, and were dropped
    truncated: int | None = None  # rows older than a truncation of an earlier batch, left out
    failure: str | None = None
    by: str | None = None  # who asked it to stop

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    def is_stale(self, now_ms: int) -> bool:
        """Tell whether a run that has not reported its end has missed several of its renewals."""
        silent_ms = now_ms - self.seen_ms
        return not self.has_ended and silent_ms > MISSED_BEFORE_STALE * self.every_s * 1_000


@dataclass(frozen=True, slots=True)
class OffsetMetadata:
    """The metadata of one commit, as far as it is a pipeline's."""

    query: str
    query_id: str
    batch: int | None = None  # None before the first batch
    table: str | None = None
    version: int | None = None
    run: Run | None = None
    to: Destination | None = None
    rejected: RejectedOffsets | None = None  # only written
    unknown: UnknownFields | None = None
    reads_committed: bool = False
    begin: int | None = None  # only written

    def text(self) -> str:
        """Return the JSON, without what does not fit."""
        for one in self._shorter():
            text = json.dumps(one._document(), separators=(",", ":"))
            if len(text.encode()) <= MAX_METADATA_BYTES:
                return text
        return ""

    def _shorter(self) -> list[OffsetMetadata]:
        """The same, then with a short failure, then without the ranges of rejected offsets and
        the unknown fields, then without the table, then without a run.
        """
        brief = None
        if self.run is not None:
            brief = replace(self.run, failure=(self.run.failure or "")[:200] or None)
        rejected = None if self.rejected is None else self.rejected.shorter()
        less = replace(self, run=brief, rejected=rejected, unknown=None)
        bare = replace(less, table=None, version=None, to=None)
        return [self, replace(self, run=brief), less, bare, replace(bare, run=None)]

    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "ottla.pipeline": VERSION,
            "query": self.query,
            "id": self.query_id,
        }
        if self.batch is not None:
            document["batch"] = self.batch
        is_delta = self.to is None or self.to.kind == "delta"
        if is_delta and self.table is not None and self.version is not None:
            document["delta"] = {"table": self.table, "version": self.version}
        if self.to is not None:
            document["sink"] = self.to.document(self.version)
        if self.rejected is not None:
            document["rejects"] = self.rejected.document()
        if self.unknown is not None:
            document["unknown"] = self.unknown.document()
        if self.reads_committed:
            document["isolation"] = READ_COMMITTED
        if self.begin is not None:
            document["from"] = self.begin
        if self.run is not None:
            run = {name: value for name, value in asdict(self.run).items() if value is not None}
            if self.run.failure is not None:
                run["failure"] = self.run.failure[:MAX_FAILURE_CHARS]
            document["run"] = run
        return document


def read_offset_metadata(metadata: str) -> OffsetMetadata | None:
    """Return what a commit's metadata says; None where a pipeline did not write it."""
    document = read_document(metadata)
    if document is None or document.get("ottla.pipeline") != VERSION:
        return None
    query, query_id, batch = document.get("query"), document.get("id"), document.get("batch")
    if not isinstance(query, str) or not isinstance(query_id, str):
        return None
    delta = document.get("delta")
    table = version = None
    if isinstance(delta, dict) and isinstance(delta.get("table"), str):
        table, version = delta["table"], _count(delta.get("version"))
    sink = document.get("sink")
    to = read_destination(sink)
    if to is not None and table is None and isinstance(sink, dict):
        table, version = to.place, _count(sink.get("version"))
    return OffsetMetadata(
        query,
        query_id,
        _count(batch),
        table,
        version,
        _read_run(document.get("run")),
        to,
        unknown=read_unknown_fields(document.get("unknown")),
        reads_committed=document.get("isolation") == READ_COMMITTED,
    )


def _read_run(document: Any) -> Run | None:
    """Return the run, None where a field has another type; unknown fields are skipped."""
    if not isinstance(document, dict):
        return None
    known = {field.name: document[field.name] for field in fields(Run) if field.name in document}
    texts, counts = ("id", "host"), ("pid", "since_ms", "seen_ms", "every_s")
    optional_counts = (
        "batch_at_ms",
        "batch_ms",
        "rows",
        "rejected",
        "unknown",
        "dropped",
        "truncated",
    )
    right = (
        all(isinstance(known.get(name), str) for name in texts)
        and all(_count(known.get(name)) is not None for name in counts)
        and all(_count(known[name]) is not None for name in optional_counts if name in known)
        and all(isinstance(known[name], str) for name in _OPTIONAL_TEXTS if name in known)
        and isinstance(known.get("rows_per_s", 0.0), int | float)
        and known.get("state") in get_args(State)
    )
    return Run(**known) if right else None


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_count else None
