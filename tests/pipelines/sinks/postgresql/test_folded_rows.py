"""Changes of a table into a real PostgreSQL: truncations, and nulls that keep what a key has."""

from __future__ import annotations

import json
from typing import Any

import pytest
from components.postgres import PASSWORD, USER, Postgres, fetched_driver
from tests.pipelines.checkpoint.memory_folder import MemoryFolder
from tests.pipelines.target.changes import KINDS, SCHEMA, Row, changes_of, expected_of, split

from components import fixture
from ottla.pipelines.run.truncations import truncated
from ottla.pipelines.sinks.postgresql.settings import read_database
from ottla.pipelines.sinks.postgresql.sink import JdbcSink
from ottla.pipelines.sinks.postgresql.table import read_table_name
from ottla.pipelines.target.keyed_table import read_keyed_table
from ottla.pipelines.target.port import NO_VERSION, Batch

pytestmark = [pytest.mark.spark, pytest.mark.full]
postgres = fixture.postgres


class Table:
    """A table of PostgreSQL with keys, and its batches."""

    def __init__(self, spark: Any, postgres: Postgres, **how: Any) -> None:
        spark.sql(f"ADD JAR '{fetched_driver()}'")
        self.spark, self.postgres, self.notes = spark, postgres, MemoryFolder()
        schema = spark.createDataFrame([], SCHEMA).schema
        self.keyed = read_keyed_table(schema, ["id"], has_truncations=True, **how)
        database = read_database(postgres.url, USER, PASSWORD)
        self.sink = JdbcSink(spark, database, read_table_name("t"), schema, keyed=self.keyed)
        self.sink.check()
        self.sink.make()

    def write(self, records: list[Row], number: int) -> int | None:
        frame = self.spark.createDataFrame(records, SCHEMA)
        batch = Batch("query", number, f'{{"batch": {number}}}')
        with truncated(frame, self.keyed, batch, self.notes) as (rows, of_it):
            return self.sink.write(rows, of_it)

    def rows(self) -> list[Any]:
        alive = "WHERE NOT is_deleted" if self.keyed.deletes == "mark" else ""
        columns = "to_json(t)"
        found = [json.loads(row[0] or "") for row in self.postgres.query(
            f"SELECT {columns} FROM t {alive} ORDER BY id"
        )]  # fmt: skip
        return [{k: v for k, v in row.items() if k != "is_deleted"} for row in found]


def as_json(rows: list[Row]) -> list[Any]:
    names = ("id", "city", "place", "at", "partition", "offset")
    return [dict(zip(names, (*row[:2], _place(row[2]), *row[3:]), strict=True)) for row in rows]


def _place(value: Any) -> Any:
    if value is None:
        return None
    zip_, street = value
    found = {} if zip_ is None else {"zip": zip_}
    if street is not None:
        found["street"] = {} if street[0] is None else {"name": street[0]}
    return found


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_has_what_all_records_give(
    spark: Any, postgres: Postgres, kind: str, seed: int
) -> None:
    table = Table(spark, postgres, **KINDS[kind])
    batches = split(changes_of(kind, seed), seed)
    for number, batch in enumerate(batches):
        assert table.write(batch, number) == NO_VERSION
        so_far = [one for some in batches[: number + 1] for one in some]
        wanted = expected_of(kind, so_far)
        assert table.rows() == as_json(wanted), number
    assert table.write(batches[-1], len(batches) - 1) is None
    assert table.rows() == as_json(wanted)


def test_a_late_record_fills_only_what_is_null(spark: Any, postgres: Postgres) -> None:
    table = Table(spark, postgres, order_by="at", deletes="mark", ignore_nulls=True)

    def record(city: str | None, zip_: int | None, at: int, *, deletes: bool = False) -> Row:
        return (1, city, (zip_, None), at, 0, at, deletes, False)

    table.write([record("new", None, 20)], 0)
    table.write([record("old", 7, 10)], 1)
    assert table.rows() == as_json([(1, "new", (7, None), 20, 0, 20)])
    # What was before a deletion fills nothing, wherever it is read.
    table.write([record(None, None, 30, deletes=True), record("x", None, 25)], 2)
    assert table.rows() == []
    table.write([record(None, 8, 40), record("y", 9, 26)], 3)
    assert table.rows() == as_json([(1, None, (8, None), 40, 0, 40)])


def test_a_field_that_the_rows_lack_is_kept(spark: Any, postgres: Postgres) -> None:
    table = Table(spark, postgres, order_by="at", deletes="mark", ignore_nulls=True)

    def record(zip_: int | None, at: int, *, deletes: bool = False) -> Row:
        return (1, None, (zip_, ("s",)), at, 0, at, deletes, False)

    table.write([record(7, 10)], 0)
    more = """'{"floor": 3, "street": {"side": "left"}}'"""
    postgres.query(f"UPDATE t SET place = CAST(place AS jsonb) || {more} RETURNING id")
    table.write([record(None, 20)], 1)
    street = {"side": "left", "name": "s"}
    assert [row["place"] for row in table.rows()] == [{"zip": 7, "floor": 3, "street": street}]
    table.write([record(None, 30, deletes=True), record(8, 40)], 2)
    assert [row["place"] for row in table.rows()] == [{"zip": 8, "street": {"name": "s"}}]


@pytest.mark.parametrize("how", [{}, {"order_by": "at"}, {"order_by": "at", "deletes": "mark"}])
def test_a_truncation_takes_the_rows_of_its_own_topic(
    spark: Any, postgres: Postgres, how: dict[str, Any]
) -> None:
    spark.sql(f"ADD JAR '{fetched_driver()}'")
    columns = "topic STRING, id INT, at INT, partition INT, offset BIGINT, tombstone BOOLEAN"
    columns += ", truncation BOOLEAN"
    schema = spark.createDataFrame([], columns).schema
    keyed = read_keyed_table(schema, ["topic", "id"], has_truncations=True, **how)
    database = read_database(postgres.url, USER, PASSWORD)
    sink = JdbcSink(spark, database, read_table_name("of_topics"), schema, keyed=keyed)
    sink.check()
    sink.make()
    notes = MemoryFolder()

    def write(number: int, *records: tuple[str, int | None, int]) -> None:
        rows = [(name, id_, at, 0, at, False, id_ is None) for name, id_, at in records]
        batch = Batch("query", number, "")
        frame = spark.createDataFrame(rows, columns)
        with truncated(frame, keyed, batch, notes, sink) as (left, of_it):
            assert sink.write(left, of_it) == NO_VERSION

    write(0, ("a", 1, 1), ("a", 2, 2), ("b", 1, 1), ("b", 2, 2))
    write(1, ("a", None, 90), ("a", 3, 91), ("b", 3, 3))
    write(2, ("b", 4, 4))
    write(3, ("b", None, 5), ("b", 5, 6), ("a", None, 92), ("a", 4, 93))
    alive = "WHERE NOT is_deleted" if keyed.deletes == "mark" else ""
    found = postgres.query(f"SELECT topic, id FROM of_topics {alive} ORDER BY topic")
    assert [tuple(map(str, row)) for row in found] == [("a", "4"), ("b", "5")]
