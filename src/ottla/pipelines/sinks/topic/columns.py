"""The columns of a frame as the key, the value and the headers of records.

| type of the column | bytes of the key or value |
|-|-|
| STRING | UTF-8 |
| BINARY | as they are |
| STRUCT, ARRAY, MAP, VARIANT | JSON, with the microseconds of times |
| others | their text, as a cast to STRING gives it |

A null stays null: a null value is a tombstone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.spark.json_texts import WHOLE_TIMES, whole_times

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

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
        """Return the frame's rows as key, value (both BINARY) and headers; raises as `made_for`."""
        return self.made_for(frame).records(frame)

    def made_for(self, frame: DataFrame) -> MadeColumns:
        """Return the columns of the records, for frames with the schema of this one.

        Raises PipelineError: a column that the frame does not have, or that has a wrong type.
        """
        from pyspark.sql import functions as F  # noqa: N812

        everything = f"to_json(struct({', '.join(map(quoted, frame.columns))}), {whole_times()})"
        given = {
            "key": "CAST(NULL AS BINARY)" if self.key is None else self.key,
            "value": everything if self.value is None else self.value,
            "headers": f"CAST(NULL AS {HEADERS})" if self.headers is None else self.headers,
        }
        chosen = [
            (F.expr(column) if isinstance(column, str) else column).alias(name)
            for name, column in given.items()
        ]
        types = {one.name: one.dataType for one in _selected(frame, given, chosen).schema.fields}
        if self.headers is not None and not _are_headers(types["headers"]):
            raise PipelineError(
                f"headers={_shown(self.headers)} is {types['headers'].simpleString()}: give an "
                f"{HEADERS}, such as the column headers of topic()"
            )
        as_bytes = [
            _bytes(F.col(name), types[name].typeName()).alias(name) for name in ("key", "value")
        ]
        headers = F.col("headers").cast(HEADERS).alias("headers")
        return MadeColumns(frame.schema, chosen, [*as_bytes, headers])


@dataclass(frozen=True, slots=True)
class MadeColumns:
    """The columns of the records of frames with a schema, in two steps.

    To make them takes 170 calls of the JVM, as each part of a column is one: 35 ms of a batch on
    two busy cores.
    """

    schema: StructType
    _chosen: list[Column]
    _as_bytes: list[Column]

    def records(self, frame: DataFrame) -> DataFrame:
        """Return the records of a frame with this schema."""
        return frame.select(*self._chosen).select(*self._as_bytes)


def _selected(frame: DataFrame, given: dict[str, Any], columns: list[Column]) -> DataFrame:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F  # noqa: N812

    try:
        return frame.select(*columns)
    except AnalysisException:
        for name, column in given.items():
            whole = F.expr(column) if isinstance(column, str) else column
            _check(frame, name, whole, column)
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
        column = F.to_json(column, WHOLE_TIMES)
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
