"""The columns of a frame as the key, the value and the headers of records.

| type of the column | bytes of the key or value |
|-|-|
| STRING | UTF-8 |
| BINARY | as they are |
| STRUCT, ARRAY, MAP, VARIANT | JSON |
| others | their text, as a cast to STRING gives it |

A null stays null: a null value is a tombstone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.column_names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Given: TypeAlias = "str | Column | None"

HEADERS: Final = "array<struct<key:string,value:binary>>"
_JSON: Final = ("struct", "array", "map", "variant")


@dataclass(frozen=True)
class RecordColumns:
    """Columns by name, as SQL or as Spark's Column. Without `value` all columns are one object."""

    key: Given = None
    value: Given = None
    headers: Given = None

    def records(self, frame: DataFrame) -> DataFrame:
        """Return the frame's rows as key, value (both BINARY) and headers.

        Raises PipelineError: a column that the frame does not have, or that has a wrong type.
        """
        from pyspark.sql import functions as F  # noqa: N812

        # As SQL: each part of a Column is a call of the JVM, for each batch.
        everything = f"to_json(struct({', '.join(map(quoted, frame.columns))}))"
        chosen = _select(
            frame,
            {
                "key": "CAST(NULL AS BINARY)" if self.key is None else self.key,
                "value": everything if self.value is None else self.value,
                "headers": f"CAST(NULL AS {HEADERS})" if self.headers is None else self.headers,
            },
        )
        types = {field.name: field.dataType for field in chosen.schema.fields}
        if self.headers is not None and not _are_headers(types["headers"]):
            raise PipelineError(
                f"headers={_shown(self.headers)} is {types['headers'].simpleString()}: give an "
                f"{HEADERS}, such as the column headers of topic()"
            )
        return chosen.select(
            *(_bytes(F.col(name), types[name].typeName()).alias(name) for name in ("key", "value")),
            F.col("headers").cast(HEADERS).alias("headers"),
        )


def _select(frame: DataFrame, columns: dict[str, Any]) -> DataFrame:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F  # noqa: N812

    given = {
        name: F.expr(column) if isinstance(column, str) else column
        for name, column in columns.items()
    }
    try:
        return frame.select(*(column.alias(name) for name, column in given.items()))
    except AnalysisException:
        for name, column in given.items():
            _check(frame, name, column, columns[name])
        raise


def _check(frame: DataFrame, name: str, column: Column, given: Any) -> None:
    """Raise PipelineError where a column is none of the frame."""
    from pyspark.errors import AnalysisException

    try:
        frame.select(column)
    except AnalysisException as error:
        raise PipelineError(
            f"{name}={_shown(given)} is no column of the frame: it has {', '.join(frame.columns)}"
        ) from error


def _shown(column: Any) -> str:
    return repr(column) if isinstance(column, str) else str(column)


def _bytes(column: Column, type_name: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    if type_name == "binary":
        return column
    if type_name in _JSON:
        column = F.to_json(column)
    return column.cast("string").cast("binary")


def _are_headers(kind: Any) -> bool:
    from pyspark.sql.types import ArrayType, BinaryType, StringType, StructType

    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    parts = [field.dataType for field in kind.elementType.fields]
    return (
        len(parts) == 2
        and isinstance(parts[0], StringType)
        and isinstance(parts[1], StringType | BinaryType)
    )
