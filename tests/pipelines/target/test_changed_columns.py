"""Which columns the rows change in a table, and what is said of those that do not fit. Without
Spark's JVM.
"""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.target.changed_columns import (
    changed_columns,
    check_partition_by,
    check_partitioned,
)

TABLE = StructType().add("a", IntegerType()).add("b", StringType())
WIDER = StructType().add("a", LongType()).add("b", StringType())
MORE = StructType().add("a", IntegerType()).add("b", StringType()).add("c", LongType())


def compared(rows: StructType, **options: Any) -> list[str]:
    given = {
        "adds": True,
        "can_widen": lambda _table, _rows: True,
        "could_widen": lambda _table, _rows: True,
        "to_widen": "DO THIS",
        **options,
    }
    return changed_columns(rows, TABLE, "t", **given).lines("t")


def test_a_line_for_each_column() -> None:
    assert compared(TABLE) == []
    assert compared(WIDER) == ["The column a of the table t, int, becomes bigint"]
    assert compared(MORE) == ["The table t gets the column c (bigint)"]


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        (WIDER, {"adds": False}, "have the table widen it: DO THIS"),
        (WIDER, {"can_widen": lambda *_: False}, "have the table widen it: DO THIS"),
        (
            WIDER,
            {"can_widen": lambda *_: False, "could_widen": lambda *_: False},
            "The column a is bigint in the rows and int in the table t, which does not hold each "
            "of its values: cast it in the query, or write to a new table",
        ),
        (MORE, {"adds": False}, r"the column c \(bigint\), which the table t does not have"),
    ],
)
def test_what_does_not_fit(rows: StructType, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        compared(rows, **options)


def test_partitions() -> None:
    check_partition_by(("a",), TABLE)
    with pytest.raises(PipelineError, match="partition_by='x' is not a column"):
        check_partition_by(("a", "x"), TABLE)
    check_partitioned((), ("a",), "t")
    check_partitioned(("a",), ("a",), "t")
    with pytest.raises(PipelineError, match="partitioned by no column, not by a"):
        check_partitioned(("a",), (), "t")
