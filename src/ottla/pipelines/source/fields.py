"""The fields of a schema by their paths, and the schema that takes them all as text."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.source.ddl import Field, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


def strings_of(schema: StructType, *, deep: bool) -> StructType:
    """Return the schema with text for every type; `deep`: those inside of structs instead."""
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType(
        [
            StructField(
                field.name,
                strings_of(field.dataType, deep=True)
                if deep and isinstance(field.dataType, StructType)
                else StringType(),
            )
            for field in schema.fields
        ]
    )


def fields_of(
    schema: StructType, *, deep: bool, before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], DataType]]:
    """Return path and type of each field; `deep`: of those inside of structs instead."""
    from pyspark.sql.types import StructType

    for field in schema.fields:
        path = (*before, field.name)
        if deep and isinstance(field.dataType, StructType):
            yield from fields_of(field.dataType, deep=True, before=path)
        else:
            yield path, field.dataType


def at(column: Column, path: tuple[str, ...]) -> Column:
    """Return the field of a struct at a path."""
    return reduce(lambda inner, name: inner[name], path, column)


def kind_of(schema: DataType) -> Kind:
    """Return Spark's type as the value that `read_ddl` reads from its text."""
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    if isinstance(schema, StructType):
        return Kind(
            "struct",
            tuple(Field(one.name, kind_of(one.dataType), one.nullable) for one in schema.fields),
        )
    if isinstance(schema, ArrayType):
        return Kind("array", (Field("element", kind_of(schema.elementType)),))
    if isinstance(schema, MapType):
        key, value = kind_of(schema.keyType), kind_of(schema.valueType)
        return Kind("map", (Field("key", key), Field("value", value)))
    if isinstance(schema, DecimalType):
        return Kind("decimal", (), schema.precision, schema.scale)
    return Kind(schema.simpleString())


def type_of(kind: Kind) -> DataType:
    """Return Spark's type of a value that `read_ddl` gives, without asking Spark."""
    from pyspark.sql.types import StructType

    field = {"name": "it", "type": _as_json(kind), "nullable": True, "metadata": {}}
    return StructType.fromJson({"type": "struct", "fields": [field]}).fields[0].dataType


# The names that differ in Spark's JSON of types.
_IN_JSON: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


def _as_json(kind: Kind) -> Any:
    if kind.name == "struct":
        fields = [
            {
                "name": one.name,
                "type": _as_json(one.kind),
                "nullable": one.nullable,
                "metadata": {},
            }
            for one in kind.fields
        ]
        return {"type": "struct", "fields": fields}
    inner = [_as_json(one.kind) for one in kind.fields]
    if kind.name == "array":
        return {"type": "array", "elementType": inner[0], "containsNull": True}
    if kind.name == "map":
        key, value = inner
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    return kind.text() if kind.name == "decimal" else _IN_JSON.get(kind.name, kind.name)
