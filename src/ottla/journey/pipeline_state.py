"""What a pipeline says of itself in the metadata of its commits: its run, its batches, what it has
rejected, where its rows go. Pure.

The metadata of a commit has the batch (`delivery_metadata.py`), and that of one partition the run:

    "run": {"id": "9f2c41d0", "state": "running", "host": "etl-3", "pid": 4711,
            "since_ms": ..., "seen_ms": ..., "every_s": 10, "batch_at_ms": ..., "batch_ms": 410,
            "rows": 12000, "rows_per_s": 29268.3, "rejected": 3, "rejected_reason": "...",
            "unknown": 7, "unknown_fields": "delay_min", "failure": "...", "by": "..."}

`seen_ms` is renewed at least every `every_s` seconds. Of a run that has no query yet, the companion
group `GROUP.run` has it.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, get_type_hints

from ottla.timelines.delivery_metadata import (
    MARK,
    DeliveredBatch,
    UnknownFields,
    is_note,
    pipeline_fields,
    read_delivery,
)
from ottla.timelines.destination import Destination, destination_of

COMPANION: Final = ".run"
"""After the name of a pipeline's group."""
STATES: Final = ("starting", "running", "retrying", "stopped", "finished", "failed")
ENDED: Final = frozenset({"stopped", "finished", "failed"})
SILENT: Final = "silent"
"""The state of a run that has missed its renewals: it was killed, or does not reach the broker."""
UNKNOWN: Final = "unknown"
MISSED_BEFORE_SILENT: Final = 3
MAX_TEXT_CHARS: Final = 1000
SOME: Final = "some of these offsets; the commit does not say which"


class Run(NamedTuple):
    """One run. Times are ms since 1970 by the clock of the machine it runs on; `rows`, `rejected`
    and `unknown` (rows with fields that the schema lacks) count in this run.
    """

    id: str
    state: str
    host: str
    pid: int
    since_ms: int
    seen_ms: int
    every_s: int
    batch_at_ms: int | None = None
    batch_ms: int | None = None
    rows: int | None = None
    rows_per_s: float | None = None
    rejected: int | None = None
    rejected_reason: str | None = None
    unknown: int | None = None
    unknown_fields: str | None = None
    failure: str | None = None
    by: str | None = None

    def state_at(self, now_ms: int) -> str:
        """Its state; `silent` if it has not ended and missed several renewals."""
        silent_ms = now_ms - self.seen_ms
        is_late = silent_ms > MISSED_BEFORE_SILENT * self.every_s * 1000
        return SILENT if is_late and self.state not in ENDED else self.state


class PipelineState(NamedTuple):
    """`batch`: the newest that is done, None before the first. `rejected`: of the newest batch of
    each partition, the reasons with the number of offsets. `kept`: where rejected rows are.
    """

    group: str
    query: str
    batch: int | None
    to: Destination | None
    version: int | None
    run: Run | None
    rejected: list[tuple[str, int]]
    kept: str
    unknown: UnknownFields | None

    def state_at(self, now_ms: int) -> str:
        return UNKNOWN if self.run is None else self.run.state_at(now_ms)


def group_of(name: str, metadata: Iterable[str]) -> str | None:
    """The group of the pipeline whose state these commits of a group have; None for the groups of
    other clients, and for a pipeline's request to stop.
    """
    texts = [each for each in metadata if MARK in each]
    if any(is_note(each) for each in texts):
        return name.removesuffix(COMPANION) if name.endswith(COMPANION) else None
    return name if any(pipeline_fields(each) is not None for each in texts) else None


def pipeline_state(
    group: str, metadata: Iterable[str], companion: Iterable[str] = ()
) -> PipelineState | None:
    """What the commits of a group say, and those of its companion; None if no pipeline's."""
    texts = [*metadata]
    fields = [found for text in texts if (found := pipeline_fields(text)) is not None]
    notes = [found for text in companion if (found := pipeline_fields(text)) is not None]
    if not fields and not notes:
        return None
    delivered = [batch for text in texts if (batch := read_delivery(text)) is not None]
    newest = max(delivered, key=lambda each: each.batch, default=None)
    runs = [run for each in (*fields, *notes) if (run := read_run(each.get("run"))) is not None]
    query = newest.query if newest else next(iter([*fields, *notes])).get("query")
    reasons = Counter[str]()
    for each in delivered:
        for one in each.rejected.ranges if each.rejected else ():
            reasons[one.reason or SOME] += one.end - one.first
    return PipelineState(
        group,
        query if isinstance(query, str) and query else group,
        newest.batch if newest else None,
        destination_of(newest.table) if newest else None,
        newest.version if newest and newest.version >= 0 else None,
        max(runs, key=lambda run: run.seen_ms, default=None),
        reasons.most_common(),
        next((each.rejected.kept for each in delivered if each.rejected), ""),
        unknown_of(delivered),
    )


def unknown_of(delivered: Iterable[DeliveredBatch]) -> UnknownFields | None:
    """Of all topics together."""
    found = [each.unknown for each in delivered if each.unknown is not None]
    if not found:
        return None
    return UnknownFields(
        found[0].did, tuple(dict.fromkeys(name for each in found for name in each.fields))
    )


_HINTS: Final = get_type_hints(Run)


def read_run(said: object) -> Run | None:
    """The run of a commit; None where a field has another type. Unknown fields are skipped."""
    if not isinstance(said, dict) or said.get("state") not in STATES:
        return None
    known: dict[str, Any] = {}
    for name, hint in _HINTS.items():
        value = said.get(name)
        if value is None and name in Run._field_defaults:
            continue
        allowed = int | float | None if hint == float | None else hint
        if isinstance(value, bool) or not isinstance(value, allowed):
            return None
        if isinstance(value, int | float) and not 0 <= value < 2**63:
            return None
        known[name] = value[:MAX_TEXT_CHARS] if isinstance(value, str) else value
    return Run(**known)
