"""What a checkpoint notes of the last truncation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from ottla.pipelines import PipelineError
from ottla.pipelines.target.keyed_table import KeyedTable
from ottla.pipelines.target.truncation import NOTE, Truncation, note, noted

KEYED = KeyedTable(("id",), ("id", "at", "partition", "offset"), order_by="at")
ROWS = StructType()
for _name, _kind in {"id": "long", "at": "decimal(38,9)", "partition": "integer"}.items():
    ROWS.add(_name, _kind)
ROWS.add("offset", "long")
COLUMNS = (("at", "decimal(38,9)"), ("partition", "int"), ("offset", "bigint"))


class Folder:
    """A checkpoint's folder on this machine."""

    def __init__(self, path: Path) -> None:
        self.path, self.location = path, str(path)

    def read(self, name: str) -> str | None:
        return (self.path / name).read_text() if (self.path / name).exists() else None

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)

    def delete(self, name: str) -> None:
        (self.path / name).unlink()


@pytest.mark.parametrize("at", ["12345678901234567890123456789.123456789", "1E-9", '"NaN"', "7"])
def test_the_place_is_noted_as_spark_writes_it(tmp_path: Path, at: str) -> None:
    # A number with a fraction has more digits than one of Python's.
    found = Truncation(COLUMNS, f'{{"at":{at},"partition":0,"offset":7}}')
    note(Folder(tmp_path), found)
    assert noted(Folder(tmp_path), ROWS, KEYED) == found


@pytest.mark.parametrize(
    "order",
    ["{", "[]", "7", "null", '{"partition":0,"offset":7}', {"at": 7}, None],
)
def test_a_note_that_says_no_place_is_damaged(order: object) -> None:
    said = {"version": 1, "order": order, "columns": ["at", "partition", "offset"]}
    with pytest.raises(PipelineError, match="is damaged"):
        NOTE.value(json.dumps(said), "c/ottla-truncated.json")


def test_a_place_by_other_columns_is_not_left_out(tmp_path: Path) -> None:
    note(Folder(tmp_path), Truncation(COLUMNS, '{"at":7,"partition":0,"offset":7}'))
    other = KeyedTable(("id",), ("id", "at", "partition", "offset"), order_by="offset")
    with pytest.raises(PipelineError, match=r"by at, partition, offset, and .* by offset, part"):
        noted(Folder(tmp_path), ROWS, other)


def test_without_a_note_there_was_no_truncation(tmp_path: Path) -> None:
    assert noted(Folder(tmp_path), ROWS, KEYED) is None


def test_a_note_without_columns_is_damaged() -> None:
    with pytest.raises(PipelineError, match="is damaged"):
        NOTE.value('{"version": 1, "order": "{}", "columns": []}', "c/ottla-truncated.json")
