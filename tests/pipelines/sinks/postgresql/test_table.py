"""Names and columns of PostgreSQL's tables; test_jdbc.py has a real one."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
    VariantType,
)

from ottla.pipelines import PipelineError
from ottla.pipelines.sinks.postgresql.table import (
    TableColumn,
    TableName,
    compare,
    identifier,
    new_columns,
    read_table_name,
    table_constraints,
)

FRAME = StructType().add("id", LongType(), nullable=False).add("word", StringType())
ID = TableColumn("id", "bigint", "bigint", not_null=True)
WORD = TableColumn("word", "character varying", "character varying(5)", length=5)


@pytest.mark.parametrize(
    ("name", "schema", "table", "sql"),
    [
        ("flights", "", "flights", '"flights"'),
        ("lake.Flights", "lake", "Flights", '"lake"."Flights"'),
        ('lake."a.b"', "lake", "a.b", '"lake"."a.b"'),
        ('"say ""x"""', "", 'say "x"', '"say ""x"""'),
        ('select "x"', "", 'select "x"', '"select ""x"""'),
        ("x; DROP TABLE y", "", "x; DROP TABLE y", '"x; DROP TABLE y"'),
    ],
)
def test_a_name_is_taken_as_it_is_written(name: str, schema: str, table: str, sql: str) -> None:
    found = read_table_name(name)
    assert (found, found.sql()) == (TableName(schema, table), sql)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "write a table's name"),
        (7, "write a table's name"),
        ("a\0b", "write a table's name"),
        ("a.b.c", "into double quotes"),
        ('a."b', "into double quotes"),
        ("t" * 55, "55 bytes; allowed: 54"),
        ("ü" * 28, "56 bytes; allowed: 54"),
        ("s" * 64 + ".t", "64 bytes; allowed: 63"),
    ],
)
def test_a_name_that_is_none_is_refused(name: object, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        read_table_name(name)


def test_the_tables_beside_it() -> None:
    beside = TableName("lake", "a").beside("_rejected")
    assert (beside.shown, beside.sql("m")) == ("lake.a_rejected", '"lake"."m"')
    assert identifier('a"b') == '"a""b"'


def test_a_new_table_has_a_type_for_each_column() -> None:
    schema = StructType().add("id", LongType()).add("at", TimestampType())
    schema = schema.add("d", DecimalType(9, 2))
    schema = schema.add("l", ArrayType(StructType().add("a", IntegerType())))
    assert new_columns(schema) == [
        ("id", "bigint"),
        ("at", "timestamp with time zone"),
        ("d", "numeric(9,2)"),
        ("l", "jsonb"),
    ]
    unknown: list[DataType] = [DayTimeIntervalType(), ArrayType(VariantType())]
    for kind in unknown:
        with pytest.raises(PipelineError, match=r"The column x is .*cast it in the query"):
            new_columns(StructType().add("x", kind))
    with pytest.raises(PipelineError, match="at most 63 bytes"):
        new_columns(StructType().add("x" * 64, IntegerType()))


def test_a_frame_that_fits_changes_nothing() -> None:
    assert compare("t", FRAME, [ID, WORD], "refuse") == []
    filled = TableColumn("made_at", "date", "date", not_null=True, filled=True)
    assert compare("t", FRAME, [ID, WORD, filled], "refuse") == []
    assert compare("t", FRAME, [ID], "add") == ["word"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([ID], r"the column word \(string\), which the table t does not have: select"),
        ([ID, TableColumn("Word", "text", "text")], "it has Word: give the column that name"),
        (
            [ID, TableColumn("word", "integer", "integer")],
            "word is string in the rows and integer in the table t: cast it",
        ),
        (
            [TableColumn("id", "bigint", "bigint", refuses=True), WORD],
            "id of the table t is always generated",
        ),
        (
            [ID, WORD, TableColumn("must", "text", "text", not_null=True)],
            "must of the table t is NOT NULL and has no default",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused(table: list[TableColumn], words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        compare("t", FRAME, table, "refuse")


def test_a_key_in_a_padded_column_has_no_spaces_at_its_end() -> None:
    padded = TableColumn("word", "character", "character(5)")
    (found,) = table_constraints(FRAME, [padded], ["word"])
    assert found.condition == "`word` IS NULL OR NOT endswith(`word`, ' ')"
    assert found.reason == (
        "the key column word ends with a space, which does not count in a character(n)"
    )
    assert table_constraints(FRAME, [padded], ["id"]) == []
    assert table_constraints(FRAME, [WORD], ["word"])[1:] == []


def test_the_table_says_what_its_rows_must_fulfil() -> None:
    found = table_constraints(
        FRAME, [ID, WORD, TableColumn("other", "text", "text", not_null=True)]
    )
    assert [(one.condition, one.reason) for one in found] == [
        ("`id` IS NOT NULL", "the column id is null, but NOT NULL"),
        (
            "`word` IS NULL OR length(`word`) <= 5",
            "the column word is longer than the 5 characters that the table allows",
        ),
    ]
