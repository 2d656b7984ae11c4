"""Which of Spark's types fits which of PostgreSQL's; test_jdbc.py writes values of each."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from ottla.pipelines.sinks.postgresql.column_types import (
    fits,
    is_rounded,
    length_constraint,
    new_type,
    rounding_constraint,
    value_constraints,
)

OF_VARIANT = StructType().add("a", VariantType())
OF_INT = StructType().add("a", IntegerType())


@pytest.mark.parametrize(
    ("spark", "column"),
    [
        (BooleanType(), "boolean"),
        (ByteType(), "smallint"),
        (IntegerType(), "integer"),
        (FloatType(), "real"),
        (DoubleType(), "double precision"),
        (DecimalType(38, 10), "numeric(38,10)"),
        (StringType(), "text"),
        (BinaryType(), "bytea"),
        (DateType(), "date"),
        (TimestampType(), "timestamp with time zone"),
        (TimestampNTZType(), "timestamp without time zone"),
        (MapType(StringType(), IntegerType()), "jsonb"),
        (VariantType(), None),
        (OF_VARIANT, None),
    ],
)
def test_the_type_of_a_new_column(spark: DataType, column: str | None) -> None:
    assert new_type(spark) == column
    if column is not None:
        assert fits(spark, column.partition("(")[0])


@pytest.mark.parametrize(
    ("spark", "column", "is_fitting"),
    [
        (IntegerType(), "bigint", True),
        (IntegerType(), "smallint", False),
        (LongType(), "integer", False),
        (StringType(), "uuid", True),
        (StringType(), "mood", False),
        (StringType(), "name", False),
        (IntegerType(), "real", False),
        (IntegerType(), "double precision", True),
        (StringType(), "integer", False),
        (DoubleType(), "real", False),
        (TimestampType(), "timestamp without time zone", False),
        (OF_INT, "json", True),
        (VariantType(), "jsonb", False),
    ],
)
def test_a_column_that_exists_takes_what_fits(
    spark: DataType, column: str, is_fitting: bool
) -> None:
    assert fits(spark, column) is is_fitting


def test_an_enumeration_takes_text() -> None:
    assert fits(StringType(), "mood", is_enum=True)
    assert not fits(IntegerType(), "mood", is_enum=True)


def test_values_that_postgresql_cannot_store() -> None:
    assert [one.reason for one in value_constraints("x", StringType(), of_texts=True)] == [
        "the column x has the character U+0000, which PostgreSQL cannot store"
    ]
    assert value_constraints("x", StringType(), of_texts=False) == []
    of_array = value_constraints("x", ArrayType(StringType()), of_texts=False)
    assert "to_json(`x`)" in of_array[0].condition
    assert "1 AND 9999" in value_constraints("x", DateType(), of_texts=False)[0].condition
    assert value_constraints("x", LongType(), of_texts=True) == []
    assert length_constraint("x", IntegerType(), 3) is None


@pytest.mark.parametrize(
    ("spark", "column", "is_changed"),
    [
        (DecimalType(10, 2), "numeric", False),
        (DecimalType(10, 2), "numeric(12,2)", False),
        (DecimalType(10, 4), "numeric(10,2)", True),
        (DecimalType(10, 0), "numeric(10,-2)", True),
        (LongType(), "numeric(10,0)", False),
        (LongType(), "numeric(10,-2)", True),
        (DoubleType(), "double precision", False),
        (StringType(), "text", False),
        (StringType(), "interval", False),
        (StringType(), "interval(6)", False),
        (StringType(), "interval(0)", True),
        (StringType(), "interval day to second", True),
    ],
)
def test_values_that_a_column_would_round(spark: DataType, column: str, is_changed: bool) -> None:
    assert is_rounded(spark, column) is is_changed


def test_times_that_a_column_would_round() -> None:
    found = rounding_constraint("x", TimestampType(), "timestamp(3) with time zone")
    assert found is not None
    assert found.condition == "`x` IS NULL OR CAST(date_format(`x`, 'SSSSSS') AS INT) % 1000 = 0"
    assert found.reason == (
        "the column x has parts of a second that the table's timestamp(3) with time zone would "
        "round"
    )
    assert rounding_constraint("x", TimestampNTZType(), "timestamp(0) without time zone")
    for whole in ("timestamp with time zone", "timestamp(6) with time zone"):
        assert rounding_constraint("x", TimestampType(), whole) is None
    assert rounding_constraint("x", DateType(), "timestamp(3) with time zone") is None
