"""The note of rejected rows that are still to be written."""

from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError
from ottla.pipelines.rejects.pending import (
    FILE,
    Part,
    PendingReject,
    read_pending,
    write_pending,
)
from ottla.pipelines.spark.jvm.files import Files

pytestmark = pytest.mark.spark

PART = Part("flights", "t1", {"key": "binary", "value": "string"}, {0: 5, 1: 7}, {0: 9, 1: 8}, 3)
PENDING = [
    PendingReject("q", 4, True, '{"batch": 4}', (PART, Part("w", "t2", {}, {0: -2}, {0: 1}, None)))
]


@pytest.fixture
def files(spark: Any, tmp_path: Path) -> Files:
    return Files(spark, str(tmp_path))


def test_a_note_is_read_as_it_was_written(files: Files) -> None:
    assert read_pending(files) == []
    write_pending(files, PENDING)
    assert read_pending(files) == PENDING
    write_pending(files, [])
    assert read_pending(files) == []


def test_a_note_that_cannot_be_read_is_refused(files: Files) -> None:
    for text, words in (
        ('{"version": 2, "due": []}', r"another version of Ottla \(version 2, not 1\)"),
        ('{"version": 1', "is damaged"),
        ('{"version": 1, "due": [{}]}', "is damaged"),
    ):
        files.write(FILE, text)
        with pytest.raises(PipelineError, match=words):
            read_pending(files)
