"""What a checkpoint notes of the last truncation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from ottla.pipelines import PipelineError
from ottla.pipelines.target.keyed_table import KeyedTable
from ottla.pipelines.target.truncation import NOTE, WHOLE, Noted, Truncation, noted, placed

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


def note_of(order: object, columns: object = ("at", "partition", "offset")) -> dict[str, object]:
    ids = {"id": "query", "batch": 7, "topics": {}, "columns": columns}
    return {"version": 1, **ids, "places": {"": order}, "before": {}}


@pytest.mark.parametrize("at", ["12345678901234567890123456789.123456789", "1E-9", '"NaN"', "7"])
def test_the_place_is_noted_as_spark_writes_it(tmp_path: Path, at: str) -> None:
    # A number with a fraction has more digits than one of Python's.
    places = {WHOLE: f'{{"at":{at},"partition":0,"offset":7}}'}
    NOTE.write(Folder(tmp_path), Noted("query", 7, {"t": "1"}, KEYED.order, places, {}))
    found = noted(Folder(tmp_path), KEYED)
    assert found == Noted("query", 7, {"t": "1"}, KEYED.order, places, {})
    assert placed(ROWS, KEYED, found.places) == Truncation(COLUMNS, places)
    assert placed(ROWS, KEYED, found.before) is None


@pytest.mark.parametrize(
    "order",
    ["{", "[]", "7", "null", '{"partition":0,"offset":7}', {"at": 7}, None],
)
def test_a_note_that_says_no_place_is_damaged(order: object) -> None:
    with pytest.raises(PipelineError, match="is damaged"):
        NOTE.value(json.dumps(note_of(order)), "c/ottla-truncated.json")


def test_a_place_by_other_columns_is_not_left_out(tmp_path: Path) -> None:
    order = '{"at":7,"partition":0,"offset":7}'
    NOTE.write(Folder(tmp_path), Noted("query", 7, {}, KEYED.order, {WHOLE: order}, {}))
    other = KeyedTable(("id",), ("id", "at", "partition", "offset"), order_by="offset")
    with pytest.raises(PipelineError, match=r"by at, partition, offset, and .* by offset, part"):
        noted(Folder(tmp_path), other)


def test_without_a_note_there_was_no_truncation(tmp_path: Path) -> None:
    assert noted(Folder(tmp_path), KEYED) is None


def test_a_note_without_columns_is_damaged() -> None:
    with pytest.raises(PipelineError, match="is damaged"):
        NOTE.value(json.dumps(note_of("{}", ())), "c/ottla-truncated.json")


@pytest.mark.parametrize(
    ("places", "now", "left"),
    [
        (("a", "b"), {"a": "1", "b": "2"}, ("a", "b")),
        (("a", "b"), {"a": "1", "b": "3"}, ("a",)),
        (("a", "b"), {"a": "1"}, ("a",)),
        (("", "a constant"), {"a": "1", "b": "2"}, ("", "a constant")),
        (("", "a constant"), {"a": "1", "b": "3"}, ()),
    ],
)
def test_a_place_in_a_topic_that_was_created_again_counts_no_more(
    places: tuple[str, ...], now: dict[str, str], left: tuple[str, ...]
) -> None:
    note = Noted("query", 7, {"a": "1", "b": "2"}, ("at",), {}, {})
    assert tuple(note.of_topics(now, dict.fromkeys(places, "{}"))) == left


def test_truncations_of_several_topics_are_a_map() -> None:
    one = Truncation((("at", "int"),), {"it's": '{"at":1}', "b": '{"at":2}'}, True)
    assert one.sql.startswith("map('it\\'s', from_json('{\"at\":1}', 'struct<`at`: int>', map(")
    assert one.orders == '[{"at":1}, {"at":2}]'
