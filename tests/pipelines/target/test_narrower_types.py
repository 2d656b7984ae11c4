"""Which columns of a table would change the values of the rows."""

import pytest
from pyspark.sql.types import ArrayType, MapType, NullType, StringType, StructType

from ottla.pipelines.target.narrower_types import added_columns, exact_casts, narrower


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


def test_columns_inside_of_columns() -> None:
    def nested(top: str, last: str, *added: str) -> StructType:
        """Rows with these columns added to each of their structs."""

        def struct(name: str, *others: str) -> StructType:
            made = StructType()
            for each in (name, *others, *added):
                made = made.add(each, "integer")
            return made

        return (
            StructType()
            .add(top, struct("b").add("c", struct("d")))
            .add("f", ArrayType(struct("g")))
            .add("i", MapType(StringType(), struct("j")))
            .add(last, "integer" if added else "string")
        )

    frame, table = nested("a", "L", "new"), nested("A", "l")
    assert added_columns(frame, table) == [
        ("a.new", "int"),
        ("a.c.new", "int"),
        ("f.element.new", "int"),
        ("i.value.new", "int"),
    ]
    assert added_columns(table, table) == []


def test_whole_numbers_whose_digits_spark_counts_otherwise() -> None:
    rows = StructType().add("a", "long").add("B", "long").add("c", "long").add("d", "integer")
    table = StructType().add("a", "decimal(19,0)").add("b", "decimal(25,6)")
    table = table.add("c", "long").add("d", "decimal(10,0)")
    assert {name: kind.simpleString() for name, kind in exact_casts(rows, table).items()} == {
        "a": "decimal(19,0)",
        "B": "decimal(25,6)",
    }
