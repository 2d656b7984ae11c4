"""`ottla pipeline status`: only through what the pipelines keep on the broker."""

from __future__ import annotations

import time
from typing import Final

from ottla.cli.command import command
from ottla.cli.failures import EXIT_FAILED, Failed
from ottla.cli.options import AS_JSON
from ottla.cli.pipeline.broker import check_reachable
from ottla.cli.pipeline.file import readable_file
from ottla.cli.pipeline.options import file_options
from ottla.cli.rows import column, emit, only_json, row
from ottla.cli.screen import note
from ottla.journey.formatting import format_elapsed
from ottla.pipelines.progress.group import GroupError
from ottla.pipelines.progress.offset_metadata import Run
from ottla.pipelines.progress.status import Status, read_status
from ottla.pipelines.spec.pipeline import FileSpec, PipelineSpec


@row
class PipelineStatus:
    """What the broker knows of one pipeline; what is not known is None. Of the table, a column
    that no pipeline has anything for is left out; a 0 is something.
    """

    pipeline: str
    group: str = only_json()
    state: str
    run: str | None = only_json()
    started: str | None = column(is_optional=True, in_json=False)
    host: str | None = column(is_optional=True)
    pid: int | None = only_json()
    since_ms: int | None = only_json()
    seen_ms: int | None = only_json()
    every_s: int | None = only_json()
    batch: int | None = column(is_optional=True)
    last_batch: str | None = column(is_optional=True, in_json=False)
    batch_at_ms: int | None = only_json()
    batch_ms: int | None = only_json()
    rows: int | None = only_json()
    rows_per_s: float | None = column(
        "rows/s", lambda each: rate_number(each.rows_per_s), is_optional=True
    )
    rejected: int | None = column(is_optional=True)
    unknown: int | None = column(cell=lambda each: each.unknown or None, is_optional=True)
    dropped: int | None = column(cell=lambda each: each.dropped or None, is_optional=True)
    truncated: int | None = column(cell=lambda each: each.truncated or None, is_optional=True)
    rejected_reason: str | None = only_json()
    unknown_fields: str | None = only_json()
    failure: str | None = only_json()
    by: str | None = only_json()
    lag: int | None = column(is_optional=True, in_json=False)
    behind: str | None = column(is_optional=True, in_json=False)
    table: str | None = column(is_optional=True)
    version: int | None = column(is_optional=True)
    lag_messages: int | None = only_json()
    lag_ms: int | None = only_json()


OF_RUN: Final = (
    *("host", "pid", "since_ms", "seen_ms", "every_s", "batch_at_ms", "batch_ms", "rows"),
    *("rows_per_s", "rejected", "unknown", "dropped", "truncated", "rejected_reason"),
    *("unknown_fields", "failure", "by"),
)
"""The fields that are those of the run."""


BAD: Final = ("failed", "silent", "unknown")
"""States with which `status` ends with code 1."""


def rate_number(rows_per_s: float | None) -> float | None:
    """A rate, with a digit after the point where it is small."""
    if rows_per_s is None:
        return None
    return round(rows_per_s) if rows_per_s >= 10 else round(rows_per_s, 1)


@command()
@file_options(readable_file)
@AS_JSON
def status(spec: FileSpec, as_json: bool) -> int:
    """Show what the broker knows of the pipelines of FILE, on any machine that reaches it."""
    now_ms = int(time.time() * 1_000)
    rows = [status_of(pipeline, read_pipeline(pipeline), now_ms) for pipeline in spec.pipelines]
    emit(rows, as_json=as_json)
    for each in () if as_json else rows:
        for line in remarks(each, now_ms):
            note(f"{each.pipeline}: {line}")
    return EXIT_FAILED if any(each.state in BAD for each in rows) else 0


def status_of(pipeline: PipelineSpec, status: Status, now_ms: int) -> PipelineStatus:
    """Pure."""
    metadata, lag = status.metadata, status.lag
    run = metadata.run if metadata else None
    behind = None
    if lag is not None and lag.age_ms is not None and lag.messages:
        behind = format_elapsed(lag.age_ms)
    return PipelineStatus(
        pipeline=pipeline.name,
        group=status.group,
        state=state_name(run, now_ms),
        run=run.id if run else None,
        started=ago(run.since_ms, now_ms) if run else None,
        batch=metadata.batch if metadata else None,
        last_batch=ago(run.batch_at_ms, now_ms) if run else None,
        lag=lag.messages if lag else None,
        behind=behind,
        table=metadata.table if metadata else None,
        version=metadata.version if metadata else None,
        lag_messages=lag.messages if lag else None,
        lag_ms=lag.age_ms if lag else None,
        **{name: getattr(run, name) if run else None for name in OF_RUN},
    )


def state_name(run: Run | None, now_ms: int) -> str:
    """Return the run's state; `silent` if it missed its renewals, `unknown` without a run."""
    if run is None:
        return "unknown"
    return "silent" if run.is_stale(now_ms) else run.state


def remarks(status: PipelineStatus, now_ms: int) -> list[str]:
    """What does not fit in a row of the table, a line each. Pure."""
    state, every_s = status.state, status.every_s
    if state == "unknown":
        return [
            f"the group {status.group} has no state of a run: the pipeline has not run "
            "with this group"
        ]
    seen = ago(status.seen_ms, now_ms)
    if state == "silent":
        host = f"{status.host} (pid {status.pid})"
        return [
            f"last seen {seen} on {host}, although it reports every {every_s} s: it was killed "
            f"within {every_s} s after that, or it does not reach the broker"
        ]
    if status.failure:
        return [status.failure]
    lines = []
    if status.rejected and status.rejected_reason:
        lines.append(f"rejected, most of them: {status.rejected_reason}")
    if status.unknown and status.unknown_fields:
        lines.append(f"rows with fields that the schema lacks: {status.unknown_fields}")
    if state == "stopped":
        by = f" by {status.by}" if status.by else ""
        return [f"stopped {seen}{by}", *lines]
    return [f"finished {seen}", *lines] if state == "finished" else lines


def ago(at_ms: int | None, now_ms: int) -> str | None:
    """`40.0 s ago`, by this machine's clock; a later moment is now."""
    return None if at_ms is None else f"{format_elapsed(max(0, now_ms - at_ms))} ago"


def read_pipeline(pipeline: PipelineSpec, *, with_lag: bool = True) -> Status:
    """What the broker knows of a pipeline. Raises Failed."""
    check_reachable(pipeline.source.kafka.bootstrap_servers)
    settings = pipeline.source.kafka.for_librdkafka()
    try:
        return read_status(settings, pipeline.delivery.group, with_lag=with_lag)
    except GroupError as error:
        raise not_reached(pipeline, error) from error


def not_reached(pipeline: PipelineSpec, error: GroupError) -> Failed:
    """The failure when its group cannot be read or written."""
    return Failed(
        f"the group {pipeline.delivery.group!r} cannot be read or written at "
        f"{pipeline.source.kafka.bootstrap_servers}: {error}.",
        "Is the broker there, and may this user read the group?",
    )
