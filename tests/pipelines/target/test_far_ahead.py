"""The order of a record that no other would follow."""

import pytest
from pyspark.sql.types import StructType

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.target.far_ahead import check_max_ahead, order_constraints, read_length_s
from ottla.pipelines.target.keyed_table import KeyedTable

ROWS = (
    StructType()
    .add("id", "long")
    .add("at", "timestamp")
    .add("day", "date")
    .add("local", "timestamp_ntz")
    .add("score", "double")
)


def ordered_by(column: str | None) -> KeyedTable:
    return KeyedTable(("id",), (*ROWS.names,), order_by=column)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1 hour", 3_600), ("90 minutes", 5_400), (" 2 DAYS ", 172_800), ("0 seconds", 0)],
)
def test_a_length_of_time(text: str, seconds: int) -> None:
    assert read_length_s(text) == seconds


@pytest.mark.parametrize("text", ["", "1", "hour", "1 month", "-1 hour", "1.5 hours", 60, None])
def test_what_is_no_length_of_time(text: object) -> None:
    with pytest.raises(PipelineError, match="write a number and a unit") as refused:
        read_length_s(text)
    assert str(refused.value).startswith(f"max_ahead={text!r}")


@pytest.mark.parametrize(
    ("column", "limit"),
    [
        ("at", "current_timestamp() + INTERVAL '3600' SECOND"),
        ("local", "localtimestamp() + INTERVAL '3600' SECOND"),
        ("day", "CAST(current_timestamp() + INTERVAL '3600' SECOND AS DATE)"),
    ],
)
def test_a_time_is_not_far_ahead_of_the_clock(column: str, limit: str) -> None:
    (found,) = order_constraints("1 hour", ordered_by(column), ROWS)
    assert found.condition == f"`{column}` IS NULL OR `{column}` <= {limit}"
    assert found.reason == (
        f"the column {column}, which orders the records of a key, is more than 1 hour ahead of "
        "the clock"
    )
    assert order_constraints(None, ordered_by(column), ROWS) == ()


def test_a_number_is_one() -> None:
    (found,) = order_constraints(None, ordered_by("score"), ROWS)
    assert found.condition == "`score` IS NULL OR NOT isnan(`score`)"
    assert found.reason == "the column score, which orders the records of a key, is NaN"
    assert order_constraints(None, ordered_by("id"), ROWS) == ()
    assert order_constraints(None, None, ROWS) == ()


def test_max_ahead_needs_a_time() -> None:
    check_max_ahead("1 hour", ordered_by("at"), ROWS)
    check_max_ahead(None, ordered_by(None), ROWS)
    with pytest.raises(PipelineError, match="write order_by too"):
        check_max_ahead("1 hour", ordered_by(None), ROWS)
    with pytest.raises(PipelineError, match="the column score is double: leave max_ahead out"):
        check_max_ahead("1 hour", ordered_by("score"), ROWS)
