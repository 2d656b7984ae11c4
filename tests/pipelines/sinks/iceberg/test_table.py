"""Names and types of Iceberg tables; what needs a catalog is tested with a stream."""

import pytest
from pyspark.sql.types import ArrayType, MapType, StructType

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.iceberg.table import can_widen, ddl, in_sql, read_name


def kind(text: str) -> StructType:
    return StructType().add("c", text)


def test_a_name_has_its_catalog() -> None:
    assert in_sql(read_name("lake.db.flights")) == "`lake`.`db`.`flights`"
    for target in ("flights", "./lake/flights", "lake.", "a b.c", "", None, 7):
        with pytest.raises(PipelineError, match="with its catalog, such as"):
            read_name(target)


def test_types_keep_the_names_of_their_fields() -> None:
    inner = StructType().add("a b", "integer").add("c`d", "string")
    wanted = StructType().add("l", ArrayType(inner)).add("m", MapType(inner, inner))
    struct = "STRUCT<`a b`: int, `c``d`: string>"
    assert ddl(wanted) == f"STRUCT<`l`: ARRAY<{struct}>, `m`: MAP<{struct}, {struct}>>"


@pytest.mark.parametrize(
    ("table", "rows", "can"),
    [
        ("integer", "long", True),
        ("float", "double", True),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(12,4)", False),
        ("integer", "double", False),
        ("integer", "string", False),
    ],
)
def test_what_iceberg_makes_wider(table: str, rows: str, *, can: bool) -> None:
    assert can_widen(kind(table)["c"].dataType, kind(rows)["c"].dataType) is can
