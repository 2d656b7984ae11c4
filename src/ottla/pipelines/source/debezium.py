"""Events of Debezium: what has become of a row of a database, in an envelope.

    {"before": {...}, "after": {...}, "source": {...}, "op": "u", "ts_ms": ..., "transaction": ...}

or that as `payload` beside its `schema`, as Kafka Connect's JSON converter writes it with
`schemas.enable`; or in a schema registry's framing, as Avro or JSON, where the envelope is the
registry's schema and has no `payload`.

`op`: c (created), r (read by a snapshot), u (updated), d (deleted), t (the table was truncated). A
deletion is followed by a tombstone, for compaction, which says nothing new.

The row of an event is `after`, that of a deletion `before`, of which many databases send the key
alone. So the fields of `before` may be missing, whatever the schema says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ottla.pipelines.failures.marks import TRUNCATED
from ottla.pipelines.source.ddl import Field, Kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

SourceFormat: TypeAlias = Literal["plain", "debezium"]
Truncate: TypeAlias = Literal["stop", "ignore", "apply"]

PLAIN: Final = "plain"
DEBEZIUM: Final = "debezium"
SOURCE_FORMATS: Final[tuple[SourceFormat, ...]] = (PLAIN, DEBEZIUM)
TRUNCATES: Final[tuple[Truncate, ...]] = ("stop", "ignore", "apply")

ABOUT: Final = ("op", "ts_ms", "source", "transaction")
"""The columns of a row beside its own: JSON as text where they are objects."""
_PLAIN_FIELDS: Final = {
    "source": "string",
    "op": "string",
    "ts_ms": "bigint",
    "ts_us": "bigint",
    "ts_ns": "bigint",
    "transaction": "string",
}
_OPS: Final = ("c", "r", "u", "d", "t")


def envelope_kind(row: Kind) -> Kind:
    """Return the type of the events of rows of a type, as `read_ddl` gives types. Pure."""
    event = (
        Field("before", _may_lack(row)),
        Field("after", row),
        *(Field(name, Kind(kind)) for name, kind in _PLAIN_FIELDS.items()),
    )
    wrapper = (Field("schema", Kind("string")), Field("payload", Kind("struct", event)))
    return Kind("struct", (*wrapper, *event))


def _may_lack(row: Kind) -> Kind:
    return replace(row, fields=tuple(replace(one, nullable=True) for one in row.fields))


def envelope(row: StructType) -> StructType:
    """Return the type of the events of rows of a type."""
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    types: dict[str, DataType] = {"string": StringType(), "bigint": LongType()}
    before = StructType([StructField(one.name, one.dataType) for one in row.fields])
    event = [StructField("before", before), StructField("after", row)]
    event += [StructField(name, types[kind]) for name, kind in _PLAIN_FIELDS.items()]
    wrapper = [StructField("schema", StringType()), StructField("payload", StructType(event))]
    return StructType([*wrapper, *event])


def _part(value: Column, kind: StructType, name: str) -> Column:
    """Return a part of an event that may be wrapped. `kind`: the type of the value."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    if name not in kind.names:
        return F.lit(None).cast(_PLAIN_FIELDS[name])
    part = value[name]
    if name in ABOUT and kind[name].dataType.typeName() == "struct":
        part = F.to_json(part, {"ignoreNullFields": "false"})
    if "payload" not in kind.names:
        return part
    payload = value["payload"]
    return F.when(payload.isNotNull(), payload[name]).otherwise(part)


def faults(value: Column, kind: StructType) -> list[tuple[Column, Column]]:
    """Return what can be wrong with an event that parses, each with the words for it.

    `kind`: the type of the value.
    """
    from pyspark.sql import functions as F  # noqa: N812

    op = _part(value, kind, "op")
    listed = ", ".join(_OPS)
    lacks = F.lit("value has no op, so it is no event of Debezium")
    unknown = F.concat(
        F.lit("value.op is "), F.substring(op, 1, 20), F.lit(f", and none of {listed}")
    )
    after = F.concat(F.lit("value.after is null in an event with op "), op)
    before = F.lit(
        "value.before is null in an event with op d, so nothing says which row was deleted"
    )
    return [
        (op.isNull(), lacks),
        (~op.isin(*_OPS), unknown),
        (op.isin("c", "r", "u") & _part(value, kind, "after").isNull(), after),
        ((op == "d") & _part(value, kind, "before").isNull(), before),
    ]


def rows(
    frame: DataFrame, key: Column, value: Column, kind: StructType, others: tuple[str, ...]
) -> DataFrame:
    """Return the rows of events that parse: `value` is that of the row.

    `kind`: the type of the value. `others`: the columns of the record to keep.
    """
    from pyspark.sql import functions as F  # noqa: N812

    op, before = _part(value, kind, "op"), _part(value, kind, "before")
    row = F.when(op == "d", before).otherwise(_part(value, kind, "after"))
    about = [_part(value, kind, name).alias(name) for name in ABOUT]
    return frame.select(
        key.alias("key"),
        row.alias("value"),
        before.alias("before"),
        *about,
        *others,
        (op == "d").alias("tombstone"),
    )


def with_truncates(rows: DataFrame, truncate: Truncate) -> DataFrame:
    """Do with the events which say that a table was truncated what is asked.

    "apply" marks them in the column `truncation`, "ignore" leaves them out, and with "stop" reading
    one fails.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if truncate == "apply":
        return rows.withColumn("truncation", F.col("op") == "t")
    if truncate == "ignore":
        return rows.where("op <> 't'")
    words = f"concat('{TRUNCATED} ', partition, ' at offset ', offset)"
    return rows.where(f"if(op = 't', CAST(raise_error({words}) AS BOOLEAN), true)")
