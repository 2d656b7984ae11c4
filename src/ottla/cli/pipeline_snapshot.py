"""The state of a running pipeline, as a document and as lines for people. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ottla.journey.formatting import elapsed_said
from ottla.pipelines.progress.commits import Delivered
from ottla.pipelines.progress.running_batch import RunningBatch
from ottla.pipelines.progress.state import Run
from ottla.pipelines.progress.status import Lag

Document = dict[str, Any]

COLUMNS = (
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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One pipeline at one moment; `run` and `latest` are None before its query has started."""

    pipeline: str
    run: Run | None = None
    latest: Delivered | None = None
    lag: Lag | None = None
    failure: str | None = None  # why it did not start
    inside: RunningBatch | None = None  # how far the batch under way has come

    @property
    def state(self) -> str:
        if self.failure is not None:
            return "failed"
        return "starting" if self.run is None else self.run.state

    @property
    def reason(self) -> str | None:
        """Why it failed or is tried again."""
        return self.failure or (self.run.failure if self.run else None)

    @property
    def mark(self) -> tuple[object, ...]:
        """Changes when there is something new to show: a batch, a state, a reason."""
        batch = self.latest.batch if self.latest else None
        return (self.state, self.reason, batch, self.run.rows if self.run else None)

    def document(self, at_ms: int) -> Document:
        """One line of `--json`; fields that are not known are null."""
        run, latest, lag = self.run, self.latest, self.lag
        return {
            "at_ms": at_ms,
            "pipeline": self.pipeline,
            "state": self.state,
            "batch": latest.batch if latest else None,
            "batch_ms": run.batch_ms if run else None,
            "rows": run.rows if run else None,
            "rows_per_s": run.rows_per_s if run else None,
            "rejected": run.rejected if run else None,
            "rejected_reason": run.rejected_reason if run else None,
            "unknown": run.unknown if run else None,
            "unknown_fields": run.unknown_fields if run else None,
            "lag_messages": lag.messages if lag else None,
            "lag_ms": lag.age_ms if lag else None,
            "table": latest.table if latest else None,
            "version": latest.version if latest else None,
            "failure": self.reason,
        }

    def row(self) -> list[str]:
        """One row of the live table."""
        run, latest, lag = self.run, self.latest, self.lag
        behind = "-"
        if lag is not None and lag.age_ms is not None:
            behind = elapsed_said(lag.age_ms) if lag.messages else "0 s"
        return [
            self.pipeline,
            self.state,
            rate_said(run.rows_per_s if run else None),
            _number(run.rows if run else None),
            _number(lag.messages if lag else None),
            behind,
            _number(latest.batch if latest else None),
            "-" if run is None or run.batch_ms is None else elapsed_said(run.batch_ms),
            _number(run.rejected if run else None),
            _number(latest.version if latest else None),
        ]

    def line(self) -> str:
        """One line for a log."""
        run, latest, lag = self.run, self.latest, self.lag
        parts = []
        if run is not None and run.batch_ms is not None and latest and latest.batch is not None:
            parts.append(
                f"batch {latest.batch} in {elapsed_said(run.batch_ms)} "
                f"({rate_said(run.rows_per_s)} rows/s)"
            )
            why = f" (most of them: {run.rejected_reason})" if run.rejected_reason else ""
            parts.append(f"{_number(run.rows)} rows, {_number(run.rejected)} rejected{why}")
            if run.unknown:
                parts.append(f"{_number(run.unknown)} with unknown fields ({run.unknown_fields})")
        if lag is not None:
            behind = f" ({elapsed_said(lag.age_ms)})" if lag.messages and lag.age_ms else ""
            parts.append(f"lag {_number(lag.messages)} messages{behind}")
        if latest and latest.version is not None:
            parts.append(f"Delta version {latest.version}")
        if self.reason is not None:
            parts.append(self.reason)
        details = "; ".join(parts)
        return f"{self.pipeline}: {self.state}{'. ' if details else ''}{details}"


def rate_said(rows_per_s: float | None) -> str:
    """A rate, with a digit after the point where it is small: 34 rows in a minute are not 0."""
    if rows_per_s is not None and 0 < rows_per_s < 10:
        return f"{rows_per_s:.1f}"
    return _number(rows_per_s)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
