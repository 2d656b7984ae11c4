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
    length_constraint,
    new_type,
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
