"""Which column of a frame is what in a table with keys."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import StructType

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.target.constraints import Constraint
from ottla.pipelines.target.keyed_table import KeyedTable, harm, read_keyed_table
from ottla.pipelines.target.record_position import RecordPosition


def frame(*columns: str) -> StructType:
    """Each column as `name type`."""
    schema = StructType()
    for column in columns:
        schema.add(*column.split(" ", 1))
    return schema


POSITION = ("partition integer", "offset long")
ROWS = frame("Id long", "word string", *POSITION)


def test_names_are_found_whatever_their_case_and_tombstones_are_not_kept() -> None:
    schema = frame("Id long", "word string", *POSITION, "tombstone boolean", "timestamp timestamp")
    keyed = read_keyed_table(schema, ["id"], order_by="TIMESTAMP")

    assert keyed == KeyedTable(
        keys=("Id",),
        columns=("Id", "word", "partition", "offset", "timestamp"),
        order_by="timestamp",
        has_tombstones=True,
    )
    assert keyed.schema(schema).names == ["Id", "word", "partition", "offset", "timestamp"]


def test_a_column_that_is_no_mark_of_tombstones_is_kept() -> None:
    keyed = read_keyed_table(frame("id long", "tombstone string", *POSITION), ["id"])
    assert "tombstone" in keyed.columns
    assert not keyed.has_tombstones


def test_a_history_is_ordered_by_the_timestamp_unless_another_column_is_named() -> None:
    schema = frame("id long", *POSITION, "timestamp timestamp", "version integer")

    by_time = read_keyed_table(schema, ["id"], history=True)
    by_version = read_keyed_table(schema, ["id"], history=True, order_by="version")

    assert by_time.order_by == "timestamp"
    types = [field.dataType.simpleString() for field in by_version.schema(schema).fields[-3:]]
    assert by_version.schema(schema).names[-3:] == ["valid_from", "valid_to", "is_current"]
    assert types == ["int", "int", "boolean"]


def test_rows_need_a_key_and_an_order_and_a_tombstone_no_more() -> None:
    schema = frame("id long", "at date", *POSITION, "tombstone boolean")
    table = (Constraint("word IS NOT NULL", "the column word is null, but NOT NULL"),)

    removes = read_keyed_table(schema, ["id"], order_by="at").constrain(table)
    keeps = read_keyed_table(schema, ["id"], order_by="at", deletes="mark").constrain(table)

    assert [one.condition for one in removes] == [
        "`id` IS NOT NULL",
        "`at` IS NOT NULL",
        "tombstone OR (word IS NOT NULL)",
    ]
    assert keeps[-1] == table[0]  # it is stored, so it must fit


def test_a_truncation_needs_its_place_in_the_order_and_no_key() -> None:
    schema = frame("id long", "at date", *POSITION, "truncation boolean")
    conditions = [
        [one.condition for one in keyed.constrain(())]
        for keys in (["id"], ["id", "at"])
        for keyed in [read_keyed_table(schema, keys, order_by="at", has_truncations=True)]
    ]
    spared = "coalesce(truncation, false) OR "
    assert conditions == [
        [f"{spared}`id` IS NOT NULL", "`at` IS NOT NULL"],
        [f"{spared}`id` IS NOT NULL", f"{spared}`at` IS NOT NULL", "`at` IS NOT NULL"],
    ]


@pytest.mark.parametrize(
    ("how", "is_warned"),
    [
        ({"order_by": "at"}, True),
        ({}, False),
        ({"order_by": "at", "deletes": "mark"}, False),
        ({"order_by": "at", "history": True}, False),
    ],
)
def test_deleted_rows_can_come_back_only_where_records_have_another_order(
    how: dict[str, Any], is_warned: bool
) -> None:
    schema = frame("id long", "at date", *POSITION, "tombstone boolean")
    notices = read_keyed_table(schema, ["id"], **how).notices()
    assert len(notices) == is_warned
    for notice in notices:
        assert "older than the deletion by at, and comes in a later batch, brings its row" in notice
        assert "write deletes='mark'" in notice


def test_without_deletions_no_row_can_come_back() -> None:
    schema = frame("id long", "at date", *POSITION)
    assert read_keyed_table(schema, ["id"], order_by="at").notices() == []


@pytest.mark.parametrize(
    ("schema", "arguments", "words"),
    [
        (ROWS, {"keys": ["idd"]}, "keys: the frame has no column 'idd'; did you mean 'Id'?"),
        (ROWS, {"keys": ["zzz"]}, "'zzz'; it has Id, word, partition, offset"),
        (ROWS, {"keys": ["id", "ID"]}, "names a column twice"),
        (ROWS, {"order_by": "wort"}, "order_by: the frame has no column 'wort'; did you mean"),
        (frame("id long"), {}, "to tell which record of a key is the last: select them too, or"),
        (frame("id long", "partition long", "offset long"), {}, r"partition \(int\)"),
        (frame("id long", "v long", "tombstone boolean"), {"order_by": "v"}, "place a tombstone"),
        (frame("id long", "v long"), {"order_by": "v", "history": True}, "comes a second time"),
        (ROWS, {"history": True}, "select the topic's column timestamp, or name another"),
        (ROWS, {"deletes": "mark"}, "needs order_by, and the column tombstone"),
        (ROWS, {"deletes": "mark", "history": True, "order_by": "word"}, "keeps each deletion"),
        (frame("id long", "Is_Current long", "v long", *POSITION),
         {"order_by": "v", "history": True},
         "has a column is_current, which the table gets"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(
    schema: StructType, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(PipelineError, match=words) as caught:
        read_keyed_table(schema, **{"keys": ["id"], **arguments})
    assert "\n" not in str(caught.value)


def test_a_type_without_order_is_refused() -> None:
    from pyspark.sql.types import LongType, MapType, StringType

    schema = StructType().add("id", MapType(StringType(), LongType()))
    with pytest.raises(PipelineError, match="is map<string,bigint>, which Spark cannot compare"):
        read_keyed_table(schema, ["id"])


def test_a_batch_frame_may_have_no_position() -> None:
    assert not read_keyed_table(frame("id long"), ["id"], streaming=False).position


def test_a_topic_beside_partition_and_offset_belongs_to_the_position() -> None:
    schema = frame("id long", "topic string", *POSITION)
    assert read_keyed_table(schema, ["id"]).position == ("topic", "partition", "offset")


def test_the_position_is_that_of_the_topic_whatever_the_name() -> None:
    schema = frame("id long", "v long", "offset long", "partition integer", "at long")
    position = RecordPosition(("partition", "at"), is_shared=True)
    keyed = read_keyed_table(schema, ["id"], position=position, order_by="v")
    assert keyed.order == ("v", "partition", "at")
    assert keyed.is_shared


def test_a_history_is_not_ordered_by_a_field_of_the_value_unless_it_is_named() -> None:
    schema = frame("id long", "timestamp timestamp", *POSITION)
    own = RecordPosition(("partition", "offset"), has_own_time=True)
    with pytest.raises(PipelineError, match="write order_by='timestamp' if it says since when"):
        read_keyed_table(schema, ["id"], history=True, position=own)
    named = read_keyed_table(schema, ["id"], history=True, position=own, order_by="timestamp")
    assert named.order_by == "timestamp"


@pytest.mark.parametrize(
    ("position", "arguments", "words"),
    [
        (RecordPosition(missing="it is gone"), {}, "the last, and it is gone, or name the column"),
        (RecordPosition(missing="it is gone"), {"order_by": "v", "history": True}, "it is gone$"),
        (
            RecordPosition(("partition", "offset"), unordered="it is mixed"),
            {},
            "order_by: it is mixed",
        ),
    ],
)
def test_rows_without_a_position_of_their_own_need_an_order(
    position: RecordPosition, arguments: dict[str, Any], words: str
) -> None:
    schema = frame("id long", "v long", *POSITION)
    with pytest.raises(PipelineError, match=words) as caught:
        read_keyed_table(schema, ["id"], position=position, **arguments)
    assert "\n" not in str(caught.value)
    assert read_keyed_table(schema, ["id"], position=position, order_by="v").order_by == "v"


def test_what_a_batch_beside_another_querys_may_have_done() -> None:
    assert harm(None) == "the table may have rows of it twice"
    assert harm(KeyedTable(("id",), ("id",), order_by="at")) == harm(None)
    assert harm(KeyedTable(("id",), ("id",))) == "its older rows may have replaced newer ones"
