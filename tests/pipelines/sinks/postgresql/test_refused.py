"""Tables that a pipeline does not write."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructType

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.postgresql.refused import (
    Guarded,
    check_guarded,
    check_order,
    unlogged,
)
from ottla.pipelines.sinks.postgresql.table import TableColumn, TableName
from ottla.pipelines.target.keyed_table import KeyedTable

ROWS = (
    StructType()
    .add("id", IntegerType())
    .add("word", StringType())
    .add("list", ArrayType(IntegerType()))
)


def keyed(order_by: str | None = None, *, has_tombstones: bool = False) -> KeyedTable:
    return KeyedTable(("id",), tuple(ROWS.names), order_by, has_tombstones=has_tombstones)


def column(kind: str) -> list[TableColumn]:
    return [TableColumn("id", "integer", "integer"), TableColumn("word", kind, kind)]


def test_an_unlogged_table_says_how_to_log_it() -> None:
    assert unlogged(TableName("lake", "t"), "lake.t").endswith('ALTER TABLE "lake"."t" SET LOGGED')


def test_an_order_that_the_database_has_otherwise_is_refused() -> None:
    with pytest.raises(PipelineError, match="is array<int>, which is JSON in PostgreSQL"):
        check_order(keyed("list"), ROWS, [], "t")
    for kind in ("citext", "uuid"):
        with pytest.raises(PipelineError, match=f"is {kind}, which orders texts otherwise"):
            check_order(keyed("word"), ROWS, column(kind), "t")


def test_an_order_that_is_sparks_is_taken() -> None:
    check_order(keyed(), ROWS, column("citext"), "t")
    check_order(keyed("id"), ROWS, column("citext"), "t")
    for kind in ("text", "character varying", "character"):
        check_order(keyed("word"), ROWS, column(kind), "t")
    check_order(keyed("word"), ROWS, [], "t")


def test_what_keeps_an_upsert_from_rows_is_refused() -> None:
    for one in (keyed(), keyed(has_tombstones=True)):
        check_guarded(one, Guarded(), "t")
        with pytest.raises(PipelineError, match="has the rule no_inserts, by which"):
            check_guarded(one, Guarded("no_inserts"), "t")
    # What it hides from an INSERT fails it; a DELETE leaves it in silence.
    check_guarded(keyed(), Guarded(is_filtered=True), "t")
    with pytest.raises(PipelineError, match="has row-level security, which hides rows"):
        check_guarded(keyed(has_tombstones=True), Guarded(is_filtered=True), "t")
