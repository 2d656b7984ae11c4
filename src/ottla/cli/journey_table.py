"""`ottla journey --table PATH`: the Delta version of a message, from the table's own log.

Each commit of a pipeline states in its `userMetadata` (in Delta's action `commitInfo`) where its
batch ends in each topic: `{"ottla.pipeline": 1, "query": ..., "id": ..., "batch": n, "cluster":
..., "topics": {name: {"id": ..., "offsets": {"0": next}}}}`. So the version of a message is the
first one whose batch ends after its offset. Only the newest MAX_COMMITS files of the log are read,
each up to MAX_LINES lines, without Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ottla.cli.failures import Failed

Document = dict[str, Any]

MAX_COMMITS: Final = 1_000
MAX_LINES: Final = 100
MAX_LINE_BYTES: Final = 1_000_000
_COMMIT: Final = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True, slots=True)
class TableCommit:
    """A pipeline's commit, reduced to one partition of one topic."""

    version: int
    at_ms: int
    query: str
    query_id: str
    batch: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """The commit that contains an offset; `is_exact` unless an earlier one may contain it."""

    commit: TableCommit
    is_exact: bool


def find_delivery(commits: Iterable[TableCommit], offset: int) -> Delivered | None:
    """Return the commit that delivered an offset. `commits`: newest first. Pure."""
    found: TableCommit | None = None
    for commit in commits:
        if commit.next_offset <= offset:
            return None if found is None else Delivered(found, is_exact=True)
        found = commit
    if found is None:
        return None
    # The oldest commit in the log: only a pipeline's first batch surely contains the offset.
    return Delivered(found, is_exact=found.batch == 0)


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

    Raises Failed for a path that is not a Delta table.
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
            raise Failed(f"{table} is not a Delta table: {why}.") from error
        if delivered is None:
            missing.append(
                f"{table}: none of the last {MAX_COMMITS} commits says that a pipeline delivered "
                "this message"
            )
            continue
        found = table_document(str(table), delivered)
        document["delivered"].append(found)
    return missing


def read_commits(
    table: Path, topic: str, topic_id: str, cluster_id: str, partition: int
) -> Iterator[TableCommit]:
    """Yield the commits of pipelines that read this topic, newest first.

    Raises OSError if the folder has no Delta log.
    """
    log = table / "_delta_log"
    names = sorted((name.name for name in log.iterdir()), reverse=True)
    commits = [match for match in map(_COMMIT.fullmatch, names) if match]
    for match in commits[:MAX_COMMITS]:
        info = _commit_info(log / match.group())
        if info is None:
            continue
        commit = _read_commit(int(match[1]), info, topic, topic_id, cluster_id, partition)
        if commit is not None:
            yield commit


def _commit_info(file: Path) -> Document | None:
    try:
        with file.open("rb") as lines:
            for _ in range(MAX_LINES):
                line = lines.readline(MAX_LINE_BYTES)
                if not line:
                    return None
                if line.startswith(b'{"commitInfo"'):
                    info = json.loads(line)["commitInfo"]
                    return info if isinstance(info, dict) else None
    except (OSError, ValueError):
        # Deleted by Delta's clean-up in the meantime, or not one of Delta's commits.
        return None
    return None


def _read_commit(
    version: int, info: Document, topic: str, topic_id: str, cluster_id: str, partition: int
) -> TableCommit | None:
    try:
        said = json.loads(info["userMetadata"])
        if said["ottla.pipeline"] != 1 or cluster_id not in str(said["cluster"]).split(","):
            return None
        place = said["topics"][topic]
        if place["id"] != topic_id:
            return None
        return TableCommit(
            version,
            int(info["timestamp"]),
            str(said["query"]),
            str(said["id"]),
            int(said["batch"]),
            int(place["offsets"][str(partition)]),
        )
    except (KeyError, ValueError, TypeError):
        return None
