"""Which columns Delta gives a wider type."""

import pytest
from pyspark.sql.types import StructType

from ottla.pipelines.sinks.delta.widening import can_widen


def one(kind: str) -> StructType:
    return StructType().add("c", kind)


def widens(table: str, rows: str, *, has_feature: bool) -> bool:
    return can_widen(one(table)["c"].dataType, one(rows)["c"].dataType, has_feature=has_feature)


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("integer", "long"),
        ("byte", "long"),
        ("float", "double"),
        ("decimal(10,2)", "decimal(12,2)"),
        ("decimal(10,2)", "decimal(12,4)"),
    ],
)
def test_what_type_widening_makes_wider(table: str, rows: str) -> None:
    assert widens(table, rows, has_feature=True)
    assert not widens(table, rows, has_feature=False)


def test_small_numbers_are_widened_in_any_table() -> None:
    for table, rows in (("byte", "short"), ("byte", "integer"), ("short", "integer")):
        assert widens(table, rows, has_feature=False)


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("integer", "double"),
        ("long", "decimal(20,0)"),
        ("date", "timestamp_ntz"),
        ("long", "integer"),
        ("double", "float"),
        ("decimal(10,2)", "decimal(11,4)"),
        ("integer", "string"),
    ],
)
def test_what_it_does_not(table: str, rows: str) -> None:
    assert not widens(table, rows, has_feature=True)
