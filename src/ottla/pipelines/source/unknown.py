"""Fields of a JSON object that its schema lacks, as Spark columns.

from_json leaves them out, so a field that is renamed or misspelt is null from then on. A field
inside of another one has its path: "n.x", "a[0].x", "m{key}.x".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.pipelines.source.words import MAX_SHOWN

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

COLUMN: Final = "_unknown"
"""The field of the value that keeps them, as JSON."""
MAX_SAID_CHARACTERS: Final = 500
_OWN: Final = "_ottla_unknown_own"
_KEYS: Final = "keys"
_INSIDE: Final = "inside"

_ENTRIES: Final = "array<struct<name: string, value: variant>>"


def unknown_of(text: Column, schema: StructType) -> Column:
    """Return the unknown fields of a JSON text, an array of struct<name, value: variant>.

    It is empty where there are none, null for what is no object. It parses the text once more; one
    that has the same name twice in an object inside of it twice, and then looks no deeper.
    """
    from pyspark.sql import functions as F  # noqa: N812

    # The parsed text as the element of an array: a name for what is asked many times.
    deep = F.transform(
        F.array(F.from_json(text, "map<string, variant>")),
        lambda one: _of_object(schema, one, F.lit("")),
    )[0]
    flat = F.transform(
        F.filter(
            F.map_entries(F.from_json(text, "map<string, string>")),
            lambda one: ~one["key"].isin(schema.names),
        ),
        lambda one: F.struct(one["key"].alias("name"), one["value"].cast("variant").alias("value")),
    )
    return F.coalesce(deep, flat)


def looked_for(text: Column, schema: StructType) -> dict[str, Column]:
    """Return what `unknown_names` looks at for unknown fields, by names."""
    from pyspark.sql import functions as F  # noqa: N812

    # Some objects only Spark's own parser reads, such as those with single quotes.
    others = F.map_keys(F.from_json(text, "map<string, string>"))
    keys = F.coalesce(F.json_object_keys(text), F.when(text.contains("{"), others))
    inside = _as_texts(schema)
    return {_KEYS: keys} if inside is None else {_KEYS: keys, _INSIDE: F.from_json(text, inside)}


def own_names(look: Column, schema: StructType) -> dict[str, Column]:
    """Return the column of an object's own unknown fields; `look` has what `looked_for` returns."""

    return {_OWN: _others(look[_KEYS], schema)}


def unknown_names(look: Column, text: Column, schema: StructType) -> Column:
    """Return the names of the unknown fields of a JSON text, the first few of them as one text.

    It is null where there are none. The column of `own_names` must be there.
    Lambdas would keep Spark from compiling the plan, so they are used for objects in arrays and
    maps alone.
    """
    from pyspark.sql import functions as F  # noqa: N812

    found = [_listed(F.col(_OWN), "")]
    if _as_texts(schema) is not None:
        found += _inside_names(schema, look[_INSIDE], "", _named(unknown_of(text, schema)))
    if len(found) == 1:
        return found[0]
    joined = F.concat_ws(", ", *found)
    return F.when(joined != "", F.substring_index(joined, ", ", MAX_SHOWN))


def _others(keys: Column, schema: StructType) -> Column:
    """Return the keys that are no fields of the schema; null where there are none for certain."""
    from pyspark.sql import functions as F  # noqa: N812

    known = F.array(*map(F.lit, schema.names)).cast("array<string>")
    # Most producers write all fields in one order, which is told quickly.
    return F.when(keys == known, F.lit(None)).otherwise(F.array_except(keys, known))


def _listed(names: Column, path: str) -> Column:
    """Return the first names, with the path to their object, as one text; null for none."""
    from pyspark.sql import functions as F  # noqa: N812

    joined = F.array_join(F.slice(names, 1, MAX_SHOWN), f", {path}")
    whole = F.substring(F.concat(F.lit(path), joined), 1, MAX_SAID_CHARACTERS)
    return F.when(F.size(names) > 0, whole)


def _inside_names(schema: StructType, texts: Column, path: str, all_names: Column) -> list[Column]:
    """Return the names of the unknown fields inside of each field of an object.

    `texts` has the fields as `_as_texts`; `all_names` are the names in the whole text.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType

    found = []
    for field in schema.fields:
        kind, full_name, given = field.dataType, f"{path}{field.name}", texts[field.name]
        if isinstance(kind, StructType):
            found.append(_listed(_others(F.json_object_keys(given), kind), f"{full_name}."))
            deeper = _as_texts(kind)
            if deeper is not None:
                inner = F.from_json(given, deeper)
                found += _inside_names(kind, inner, f"{full_name}.", all_names)
        elif _has_objects(kind):
            here = F.filter(F.array_distinct(all_names), _is_in(full_name))
            found.append(F.when(_any_in(kind, given), _listed(here, "")))
    return found


def _is_in(full_name: str) -> Callable[[Column], Column]:
    """Tell of a name whether its field is in an array or a map of that name."""
    return lambda name: name.startswith(f"{full_name}[") | name.startswith(f"{full_name}{{")


def _any_in(kind: DataType, given: Column) -> Column:
    """Tell whether objects in arrays and maps, given as `_as_texts`, have unknown fields."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.exists(given, lambda one: _any_in(element, one))
    if isinstance(kind, MapType):
        value = kind.valueType
        return F.exists(F.map_values(given), lambda one: _any_in(value, one))
    assert isinstance(kind, StructType), "other types have no objects in them"
    found = F.exists(F.json_object_keys(given), lambda key: ~key.isin(kind.names))
    texts = _as_texts(kind)
    if texts is None:
        return found
    inside = F.from_json(given, texts)
    for field in kind.fields:
        if _has_objects(field.dataType):
            found = found | F.coalesce(_any_in(field.dataType, inside[field.name]), F.lit(False))
    return found


def _as_texts(schema: StructType) -> StructType | None:
    """Return the fields that have objects in them, with these as JSON texts; None: none has."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    def of(kind: DataType) -> DataType:
        if isinstance(kind, ArrayType):
            return ArrayType(of(kind.elementType))
        if isinstance(kind, MapType):
            return MapType(kind.keyType, of(kind.valueType))
        return StringType()

    fields = [
        StructField(field.name, of(field.dataType))
        for field in schema.fields
        if _has_objects(field.dataType)
    ]
    return StructType(fields) if fields else None


def _named(entries: Column) -> Column:
    """Return the names of entries, without the numbers and keys that are others in each record."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.transform(
        entries,
        lambda one: F.regexp_replace(
            F.regexp_replace(one["name"], r"\[[0-9]+\]", "[]"), r"\{[^}]*\}", "{}"
        ),
    )


def as_json(entries: Column) -> Column:
    """Return unknown fields as a JSON object, null where there are none."""
    from pyspark.sql import functions as F  # noqa: N812

    # Not a map: a text may have a name twice.
    pairs = F.transform(
        entries, lambda one: F.concat(_element(one["name"]), F.lit(":"), _element(one["value"]))
    )
    whole = F.concat(F.lit("{"), F.array_join(pairs, ","), F.lit("}"))
    return F.when(F.size(entries) > 0, whole)


def _element(column: Column) -> Column:
    """Return a value as JSON; to_json takes no plain values."""
    from pyspark.sql import functions as F  # noqa: N812

    listed = F.to_json(F.array(column))
    return F.substring(listed, F.lit(2), F.length(listed) - 2)


def _of_object(schema: StructType, found: Column, path: Column) -> Column:
    """Return the unknown fields of an object, given as a map, and of those inside of it."""
    from pyspark.sql import functions as F  # noqa: N812

    own = F.transform(
        F.filter(F.map_entries(found), lambda one: ~one["key"].isin(schema.names)),
        lambda one: F.struct(F.concat(path, one["key"]).alias("name"), one["value"].alias("value")),
    )
    inside = [
        _or_none(
            _inside(
                field.dataType,
                F.try_element_at(found, F.lit(field.name)),
                F.concat(path, F.lit(field.name)),
            )
        )
        for field in schema.fields
        if _has_objects(field.dataType)
    ]
    return F.concat(own, *inside) if inside else own


def _inside(kind: DataType, value: Column, path: Column) -> Column:
    """Return the unknown fields of the objects in a value, given as a variant."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        fields = F.try_variant_get(value, "$", "map<string, variant>")
        return _of_object(kind, fields, F.concat(path, F.lit(".")))
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.flatten(
            F.transform(
                F.try_variant_get(value, "$", "array<variant>"),
                lambda one, number: _or_none(
                    _inside(
                        element, one, F.concat(path, F.lit("["), number.cast("string"), F.lit("]"))
                    )
                ),
            )
        )
    assert isinstance(kind, MapType), "other types have no objects in them"
    return F.flatten(
        F.transform(
            F.map_entries(F.try_variant_get(value, "$", "map<string, variant>")),
            lambda one: _or_none(
                _inside(
                    kind.valueType,
                    one["value"],
                    F.concat(path, F.lit("{"), one["key"], F.lit("}")),
                )
            ),
        )
    )


def _or_none(entries: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.coalesce(entries, F.from_json(F.lit("[]"), _ENTRIES))


def _has_objects(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return _has_objects(kind.elementType)
    if isinstance(kind, MapType):
        return _has_objects(kind.valueType)
    return isinstance(kind, StructType)
