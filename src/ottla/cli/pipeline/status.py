"""`ottla pipeline status`: only through what the pipelines keep on the broker."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ottla.cli.command import command
from ottla.cli.failures import EXIT_FAILED, Failed
from ottla.cli.options import AS_JSON
from ottla.cli.pipeline.broker import check_reachable
from ottla.cli.pipeline.file import readable_file
from ottla.cli.pipeline.options import FILE, ONLY
from ottla.cli.screen import note, show_json, show_table
from ottla.journey.formatting import elapsed_said
from ottla.pipelines.file.specification import FileSpec, PipelineSpec
from ottla.pipelines.progress.group import GroupError
from ottla.pipelines.progress.state import Run
from ottla.pipelines.progress.status import Status, read_status

Document = dict[str, Any]

COLUMNS: Final = (
    "pipeline",
    "state",
    "started",
    "host",
    "batch",
    "last batch",
    "rows/s",
    "rejected",
    "unknown",
    "lag",
    "behind",
    "table",
    "version",
)


@command()
@FILE
@ONLY
@AS_JSON
def status(file: Path, only: Sequence[str], as_json: bool) -> int:
    """Show what the broker knows of the pipelines of FILE, on any machine that reaches it."""
    return show_status(readable_file(file, only), as_json=as_json)


def show_status(spec: FileSpec, *, as_json: bool) -> int:
    """Print a row for each pipeline; returns 1 when one has failed, is silent or has never run."""
    now_ms = int(time.time() * 1_000)
    documents = [
        status_document(pipeline, read_pipeline(pipeline), now_ms) for pipeline in spec.pipelines
    ]
    if as_json:
        show_json(documents)
    else:
        rows = [status_row(document, now_ms) for document in documents]
        # A column that no pipeline has anything for is left out; a 0 is something.
        kept = [n for n in range(len(COLUMNS)) if any(row[n] is not None for row in rows)]
        show_table([COLUMNS[n] for n in kept], [[row[n] for n in kept] for row in rows])
        for document in documents:
            for line in remarks(document, now_ms):
                note(f"{document['pipeline']}: {line}")
    bad = ("failed", "silent", "unknown")
    return EXIT_FAILED if any(document["state"] in bad for document in documents) else 0


def status_document(pipeline: PipelineSpec, status: Status, now_ms: int) -> Document:
    """What `--json` prints of one pipeline; fields that are not known are null. Pure."""
    metadata = status.metadata
    run = metadata.run if metadata else None
    document: Document = {
        "pipeline": pipeline.name,
        "group": status.group,
        "state": state_name(run, now_ms),
        "run": run.id if run else None,
    }
    for name in ("host", "pid", "since_ms", "seen_ms", "every_s"):
        document[name] = getattr(run, name) if run else None
    document["batch"] = metadata.batch if metadata else None
    for name in ("batch_at_ms", "batch_ms", "rows", "rows_per_s", "rejected", "unknown"):
        document[name] = getattr(run, name) if run else None
    for name in ("rejected_reason", "unknown_fields", "failure", "by"):
        document[name] = getattr(run, name) if run else None
    document["table"] = metadata.table if metadata else None
    document["version"] = metadata.version if metadata else None
    document["lag_messages"] = status.lag.messages if status.lag else None
    document["lag_ms"] = status.lag.age_ms if status.lag else None
    return document


def state_name(run: Run | None, now_ms: int) -> str:
    """Return the run's state; `silent` if it missed its renewals, `unknown` without a run."""
    if run is None:
        return "unknown"
    return "silent" if run.is_stale(now_ms) else run.state


def status_row(document: Document, now_ms: int) -> list[object]:
    """One row of the table. Pure."""
    rate = document["rows_per_s"]
    lag_ms = document["lag_ms"]
    return [
        document["pipeline"],
        document["state"],
        ago(document["since_ms"], now_ms),
        document["host"],
        document["batch"],
        ago(document["batch_at_ms"], now_ms),
        None if rate is None else round(rate) if rate >= 10 else round(rate, 1),
        document["rejected"],
        document["unknown"] or None,
        document["lag_messages"],
        None if lag_ms is None or not document["lag_messages"] else elapsed_said(lag_ms),
        document["table"],
        document["version"],
    ]


def remarks(document: Document, now_ms: int) -> list[str]:
    """What does not fit in a row of the table, a line each. Pure."""
    state, every_s = document["state"], document["every_s"]
    if state == "unknown":
        return [
            f"the group {document['group']} has no state of a run: the pipeline has not run "
            "with this group"
        ]
    seen = ago(document["seen_ms"], now_ms)
    if state == "silent":
        host = f"{document['host']} (pid {document['pid']})"
        return [
            f"last seen {seen} on {host}, although it reports every {every_s} s: it was killed "
            f"within {every_s} s after that, or it does not reach the broker"
        ]
    if document["failure"]:
        return [str(document["failure"])]
    lines = []
    if document["rejected"] and document["rejected_reason"]:
        lines.append(f"rejected, most of them: {document['rejected_reason']}")
    if document["unknown"] and document["unknown_fields"]:
        lines.append(f"rows with fields that the schema lacks: {document['unknown_fields']}")
    if state == "stopped":
        by = f" by {document['by']}" if document["by"] else ""
        return [f"stopped {seen}{by}", *lines]
    return [f"finished {seen}", *lines] if state == "finished" else lines


def ago(at_ms: int | None, now_ms: int) -> str | None:
    """`40.0 s ago`, by this machine's clock; a later moment is now."""
    return None if at_ms is None else f"{elapsed_said(max(0, now_ms - at_ms))} ago"


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
