"""Which columns of a table would change the values of the rows."""

import pytest
from pyspark.sql.types import ArrayType, MapType, NullType, StructType

from ottla.pipelines.sinks.delta.narrower_types import can_widen, narrower


def one(kind: str) -> StructType:
    return StructType().add("c", NullType() if kind == "void" else kind)


@pytest.mark.parametrize(
    ("rows", "table"),
    [
        ("long", "long"),
        ("integer", "long"),
        ("byte", "short"),
        ("short", "float"),
        ("integer", "double"),
        ("float", "double"),
        ("integer", "decimal(10,0)"),
        ("long", "decimal(22,3)"),
        ("decimal(10,2)", "decimal(12,4)"),
        ("date", "string"),
        ("date", "timestamp"),
        ("double", "string"),
        ("string", "string"),
        ("void", "date"),
    ],
)
def test_a_type_that_holds_each_value(rows: str, table: str) -> None:
    assert list(narrower(one(rows), one(table))) == []


@pytest.mark.parametrize(
    ("rows", "table"),
    [
        ("double", "integer"),
        ("long", "integer"),
        ("long", "double"),
        ("integer", "float"),
        ("double", "float"),
        ("integer", "decimal(9,0)"),
        ("decimal(10,4)", "decimal(10,2)"),
        ("decimal(10,2)", "decimal(10,4)"),
        ("decimal(10,2)", "double"),
        ("timestamp", "date"),
        ("timestamp", "timestamp_ntz"),
        ("string", "integer"),
        ("binary", "string"),
    ],
)
def test_a_type_that_changes_values(rows: str, table: str) -> None:
    ((name, kind, held),) = narrower(one(rows), one(table))
    assert (name, f"{kind.simpleString()}") == ("c", one(rows)["c"].dataType.simpleString())
    assert held == one(table)["c"].dataType


def test_inner_fields_are_named_whatever_their_case() -> None:
    inner = StructType().add("N", "double")
    rows = StructType().add("s", inner).add("l", ArrayType(inner)).add("m", MapType(inner, inner))
    other = StructType().add("n", "long")
    table = StructType().add("S", other).add("L", ArrayType(other)).add("M", MapType(other, other))
    found = [name for name, _, _ in narrower(rows.add("new", "long"), table)]
    assert found == ["s.N", "l.element.N", "m.key.N", "m.value.N"]
    assert list(narrower(StructType().add("s", inner), StructType().add("s", "string")))


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
