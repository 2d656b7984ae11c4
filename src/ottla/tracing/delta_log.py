"""Which commit of a Delta table delivered a message, from the table's own log, without Spark.

Each commit of a pipeline states in its `userMetadata` (in Delta's action `commitInfo`) where its
batch ends in each topic: `{"ottla.pipeline": 1, "query": ..., "id": ..., "batch": n, "cluster":
..., "topics": {name: {"id": ..., "offsets": {"0": next}}}}`. So the version of a message is the
first one whose batch ends after its offset. Only the newest MAX_COMMITS files of the log are read,
each up to MAX_LINES lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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


def _commit_info(file: Path) -> dict[str, Any] | None:
    try:
        with file.open("rb") as lines:
            for _ in range(MAX_LINES):
                line = lines.readline(MAX_LINE_BYTES)
                if not line:
                    return None
                if line.startswith(b'{"commitInfo"'):
                    info = json.loads(line)["commitInfo"]
                    return info if isinstance(info, dict) else None
    except (OSError, ValueError, RecursionError):
        # Deleted by Delta's clean-up in the meantime, or not one of Delta's commits.
        return None
    return None


def _read_commit(
    version: int, info: dict[str, Any], topic: str, topic_id: str, cluster_id: str, partition: int
) -> TableCommit | None:
    try:
        said = json.loads(info["userMetadata"])
        if said["ottla.pipeline"] != 1 or cluster_id not in str(said["cluster"]).split(","):
            return None
        read = said["topics"][topic]
        if read["id"] != topic_id:
            return None
        return TableCommit(
            version,
            int(info["timestamp"]),
            str(said["query"]),
            str(said["id"]),
            int(said["batch"]),
            int(read["offsets"][str(partition)]),
        )
    except (KeyError, ValueError, TypeError, RecursionError):
        return None
