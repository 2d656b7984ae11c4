"""How a running pipeline stands, as a document and as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ottla.journey.formatting import format_elapsed
from ottla.pipelines.program.snapshot import Snapshot

Document = dict[str, Any]

COLUMNS: Final = (
    "pipeline",
    "state",
    "rows/s",
    "rows",
    "lag",
    "behind",
    "batch",
    "took",
    "rejected",
    "version",
)
OF_RUN: Final = (
    *("batch_ms", "rows", "rows_per_s", "rejected", "rejected_reason", "dropped", "truncated"),
    *("unknown", "unknown_fields"),
)
"""The fields of the document that are those of the run."""


def snapshot_document(snapshot: Snapshot, at_ms: int) -> Document:
    """One line of `--json`; fields that are not known are null."""
    run, latest, lag = snapshot.run, snapshot.latest, snapshot.lag
    return {
        "at_ms": at_ms,
        "pipeline": snapshot.pipeline,
        "state": snapshot.state,
        "batch": latest.batch if latest else None,
        **{name: getattr(run, name) if run else None for name in OF_RUN},
        "lag_messages": lag.messages if lag else None,
        "lag_ms": lag.age_ms if lag else None,
        "table": latest.table if latest else None,
        "version": latest.version if latest else None,
        "failure": snapshot.reason,
    }


def snapshot_row(snapshot: Snapshot) -> list[str]:
    """One row of the live table."""
    run, latest, lag = snapshot.run, snapshot.latest, snapshot.lag
    behind = "-"
    if lag is not None and lag.age_ms is not None:
        behind = format_elapsed(lag.age_ms) if lag.messages else "0 s"
    return [
        snapshot.pipeline,
        snapshot.state,
        format_rate(run.rows_per_s if run else None),
        _number(run.rows if run else None),
        _number(lag.messages if lag else None),
        behind,
        _number(latest.batch if latest else None),
        "-" if run is None or run.batch_ms is None else format_elapsed(run.batch_ms),
        _number(run.rejected if run else None),
        _number(latest.version if latest else None),
    ]


def remarks(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """What does not fit in a row of the live table: rich's style and a line, each."""
    run = snapshot.run
    if snapshot.inside is not None:
        yield "dim", f"this batch: {snapshot.inside.line()}"
    if run is not None:
        if run.rejected_reason is not None:
            yield "yellow", f"rejected, most of them: {run.rejected_reason}"
        if run.dropped:
            yield "yellow", f"{run.dropped:,} rows do not fulfil expect: dropped"
        if run.truncated:
            yield "yellow", f"{run.truncated:,} rows older than a truncation: left out"
        if run.unknown:
            yield "yellow", f"{run.unknown:,} rows with unknown fields: {run.unknown_fields}"
    if snapshot.reason is not None:
        yield "red", snapshot.reason


def snapshot_line(snapshot: Snapshot) -> str:
    """One line for a log."""
    run, latest, lag = snapshot.run, snapshot.latest, snapshot.lag
    parts = []
    if run is not None and run.batch_ms is not None and latest and latest.batch is not None:
        parts.append(
            f"batch {latest.batch} in {format_elapsed(run.batch_ms)} "
            f"({format_rate(run.rows_per_s)} rows/s)"
        )
        why = f" (most of them: {run.rejected_reason})" if run.rejected_reason else ""
        parts.append(f"{_number(run.rows)} rows, {_number(run.rejected)} rejected{why}")
        if run.dropped:
            parts.append(f"{_number(run.dropped)} dropped, which do not fulfil expect")
        if run.truncated:
            parts.append(f"{_number(run.truncated)} left out, older than a truncation")
        if run.unknown:
            parts.append(f"{_number(run.unknown)} with unknown fields ({run.unknown_fields})")
    if lag is not None:
        behind = f" ({format_elapsed(lag.age_ms)})" if lag.messages and lag.age_ms else ""
        parts.append(f"lag {_number(lag.messages)} messages{behind}")
    if latest and latest.version is not None:
        parts.append(f"Delta version {latest.version}")
    if snapshot.reason is not None:
        parts.append(snapshot.reason)
    details = "; ".join(parts)
    return f"{snapshot.pipeline}: {snapshot.state}{'. ' if details else ''}{details}"


def format_rate(rows_per_s: float | None) -> str:
    """A rate, with a digit after the point where it is small: 34 rows in a minute are not 0."""
    if rows_per_s is not None and 0 < rows_per_s < 10:
        return f"{rows_per_s:.1f}"
    return _number(rows_per_s)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
