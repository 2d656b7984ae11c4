"""Kafka's file of a reassignment is read, and a wrong one is refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.client.admin.reassignment_file import ReassignmentFileError, read_reassignments

GOOD = {"topic": "t", "partition": 0, "replicas": [1, 2]}


def written(folder: Path, document: Any) -> Path:
    path = folder / "moves.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_what_kafkas_tool_writes_is_read(tmp_path: Path) -> None:
    other = {"topic": "t", "partition": 1, "replicas": [2], "log_dirs": ["any"]}
    path = written(tmp_path, {"version": 1, "partitions": [GOOD, other]})
    assert read_reassignments(path) == {"t": {0: (1, 2), 1: (2,)}}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("{", "is not JSON"),
        pytest.param("[" * 5000, "is not JSON", id="deep"),
        ([], "has no list of partitions"),
        ({"partitions": []}, "names no partition"),
        ({"version": 2, "partitions": [GOOD]}, "has version 2; only 1 is known"),
        ({"partitions": [GOOD, GOOD]}, "names t-0 twice"),
        ({"partitions": [GOOD, 7]}, "entry 2 of partitions is 7"),
        ({"partitions": [{**GOOD, "partition": "0"}]}, "entry 1 of partitions is"),
        ({"partitions": [{**GOOD, "replicas": [True]}]}, "entry 1 of partitions is"),
        ({"partitions": [{**GOOD, "replicas": []}]}, "t-0 has no replicas"),
        ({"partitions": [{**GOOD, "replicas": [1, 1]}]}, "t-0 names a broker twice"),
        ({"partitions": [{**GOOD, "log_dirs": ["/a", "any"]}]}, "t-0 names log_dirs"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, document: Any, reason: str) -> None:
    with pytest.raises(ReassignmentFileError, match=reason):
        read_reassignments(written(tmp_path, document))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReassignmentFileError, match="No such file"):
        read_reassignments(tmp_path / "none.json")
