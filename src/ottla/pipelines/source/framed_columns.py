"""Reading a key or value in a schema registry's framing, as Spark columns.

Data with an id that the plan does not know fails the batch, before anything of it is written: the
text of the failure begins with UNKNOWN_ID, and the query starts again with a plan that knows the
id (`run.new_schemas`). Data whose schema cannot be read fails it with CONFLICT.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.pipelines.failures.marks import CONFLICT, UNKNOWN_ID
from ottla.pipelines.registry.avro_schema import END, END_BYTES, VALUE
from ottla.pipelines.registry.framed import Framed
from ottla.pipelines.source import protobuf_column, protobuf_spark
from ottla.pipelines.source.checks import checks
from ottla.registry.framing import HEAD_BYTES, MAGIC, head
from ottla.registry.registered import AVRO, JSON, PROTOBUF

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

# No data ends like this by design or by chance.
_MARK: Final = secrets.token_bytes(END_BYTES)


def type_of(framed: Framed) -> DataType:
    """Return the type that data of this framing is read as."""
    from pyspark.sql.types import StructType

    # DataType has no reader of its own for JSON of any type; a field of a struct does.
    field = {"name": "x", "type": json.loads(framed.type), "nullable": True, "metadata": {}}
    return StructType.fromJson({"type": "struct", "fields": [field]})["x"].dataType


def id_in(column: Column) -> Column:
    """Return the schema's id in framed bytes, as text."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    return F.conv(F.hex(F.substring(column, len(MAGIC) + 1, HEAD_BYTES - len(MAGIC))), 16, 10)


def looks_framed(column: Column) -> Column:
    """Tell whether bytes begin as framed data does."""
    from pyspark.sql import functions as F  # noqa: N812

    return (F.length(column) >= HEAD_BYTES) & (F.substring(column, 1, 1) == F.lit(MAGIC))


def payload(column: Column) -> Column:
    """Return the bytes after the framing."""
    from pyspark.sql import functions as F  # noqa: N812

    size = F.greatest(F.length(column) - HEAD_BYTES, F.lit(0))
    return F.substring(column, F.lit(HEAD_BYTES + 1), size)


def framing_fault(column: Column, framed: Framed, name: str) -> Column:
    """Return what is wrong with the framing of the bytes, null where nothing is."""
    from pyspark.sql import functions as F  # noqa: N812

    unframed = F.lit(
        f"{name} has no schema id: it does not begin with the byte 0 and the 4 bytes of an id"
    )
    fault = F.when(column.isNotNull() & ~looks_framed(column), unframed)
    if framed.missing:
        heads = [F.lit(head(one)) for one in framed.missing]
        words = F.concat(
            F.lit(f"{name} has the schema id "),
            id_in(column),
            F.lit(", which is not in the schema registry"),
        )
        fault = fault.when(_head(column).isin(heads), words)
    return fault


def decode(
    column: Column, framed: Framed, name: str, read_json: Callable[[Column, DataType], Column]
) -> Column:
    """Return the column that holds what the bytes are read as; `value_in` takes it out of it.

    It is null where the framing has a fault. `read_json` reads the bytes of a JSON object.
    """
    from pyspark.sql import functions as F  # noqa: N812

    data, first = payload(column), _head(column)
    faulty = column.isNull() | framing_fault(column, framed, name).isNotNull()
    chosen = F.when(faulty, F.lit(None))
    readable = [one for one in framed.branches if not one.refused]
    if framed.format == AVRO:
        from pyspark.sql.avro.functions import from_avro

        options = {"mode": "PERMISSIVE", "avroSchema": framed.reader}
        marked = F.concat(data, F.lit(_MARK))
        for one in readable:
            chosen = chosen.when(
                first == F.lit(head(one.id)), from_avro(marked, one.writer, options)
            )
    elif framed.format == PROTOBUF:
        heads = [F.lit(head(one.id)) for one in readable]
        form = protobuf_spark.readable(framed)
        if form is None:
            # Python sees the whole data: Spark calls it for all rows, whatever their branch is.
            read = protobuf_column.decoded(column, framed, type_of(framed), name)
        else:
            read = protobuf_spark.decoded(column, framed, form, type_of(framed), name)
        chosen = chosen.when(first.isin(heads), read)
    else:
        # JSON has the names of its fields: the one schema reads all data.
        heads = [F.lit(head(one.id)) for one in readable]
        chosen = chosen.when(first.isin(heads), read_json(data, type_of(framed)))
    for one in framed.branches:
        if one.refused:
            words = F.lit(f"{CONFLICT}: {name}: {one.refused}")
            chosen = chosen.when(first == F.lit(head(one.id)), F.raise_error(words))
    unknown = F.concat(F.lit(f"{UNKNOWN_ID}: {name} has the schema id "), id_in(column))
    return chosen.otherwise(F.raise_error(unknown))


def value_in(decoded: Column, framed: Framed) -> Column:
    """Return the value itself from what `decode` returns."""
    return decoded if framed.format == JSON else decoded[VALUE]


def binary_faults(decoded: Column, framed: Framed, name: str) -> list[tuple[Column, Column]]:
    """Return what can be wrong with data that is not JSON, each with the words for it."""
    if framed.format == PROTOBUF:
        fault = decoded[protobuf_column.FAULT]
        return [(fault.isNotNull(), fault)]
    return _avro_faults(decoded, framed, name)


def _avro_faults(decoded: Column, framed: Framed, name: str) -> list[tuple[Column, Column]]:
    """Return what can be wrong with Avro data, each with the words for it."""
    from pyspark.sql import functions as F  # noqa: N812

    unread = decoded[END].isNull() | (decoded[END] != F.lit(_MARK))
    words = F.lit(f"{name} is not Avro data of the schema that its id names")
    # Avro data has its numbers in range and its fields in place; times it may have of any year.
    found = checks(_nullable(type_of(framed)), name)
    return [(unread, words), *[(fails(decoded[VALUE]), F.lit(words)) for fails, words in found]]


def _head(column: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.substring(column, 1, HEAD_BYTES)


def _nullable(kind: DataType) -> DataType:
    """Return a type without NOT NULL at any depth: Avro data always has what its schema has."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(kind, StructType):
        return StructType(
            [StructField(one.name, _nullable(one.dataType), True) for one in kind.fields]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _nullable(kind.valueType), True)
    return kind
