"""The Delta version of a message, from the log of a table that was named."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ottla.tracing.delta_log import MAX_COMMITS, Delivered, find_delivery, read_commits
from ottla.wording.errors import ReportedError

Document = dict[str, Any]


class DeltaTableError(ReportedError):
    """A path is not that of a Delta table."""


def table_document(table: str, delivered: Delivered) -> Document:
    """The delivery in the shape that the journey uses; it has no group."""
    commit = delivered.commit
    since_ms = commit.at_ms if delivered.is_exact else None
    first_version = commit.version if delivered.is_exact else 0
    first_batch = commit.batch if delivered.is_exact else 0
    return {
        "group": None,
        "query": commit.query,
        "when": {
            "since_ms": since_ms,
            "until_ms": commit.at_ms,
            "exact": delivered.is_exact,
        },
        "batch": commit.batch if delivered.is_exact else None,
        "first_batch": first_batch,
        "last_batch": commit.batch,
        "delta": {
            "table": table,
            "version": commit.version if delivered.is_exact else None,
            "first_version": first_version,
            "last_version": commit.version,
        },
        "sink": None,
        "row": None,
        "first_commit_seen": False,
    }


def add_tables(
    document: Document, tables: Iterable[Path], topic_id: str, cluster_id: str
) -> list[str]:
    """Add to a journey what the tables record about the message; returns a line for each that has
    nothing.

    Raises DeltaTableError for a path that is not a Delta table.
    """
    missing = []
    for table in tables:
        commits = read_commits(
            table, document["topic"], topic_id, cluster_id, document["partition"]
        )
        try:
            delivered = find_delivery(commits, document["offset"])
        except OSError as error:
            why = (error.strerror or "").lower()
            raise DeltaTableError(f"{table} is not a Delta table: {why}.") from error
        if delivered is None:
            missing.append(
                f"{table}: none of the last {MAX_COMMITS} commits says that a pipeline delivered "
                "this message"
            )
            continue
        found = table_document(str(table), delivered)
        document["delivered"].append(found)
    return missing
