"""Topics over Spark Connect, such as Spark's declarative pipelines have them.

There the query is Spark's own: nothing of Ottla runs beside it that would count the rows which do
not parse, or write them to a table. So the frame has all rows, and what the query then leaves out
it does not leave out in silence. A function of a declarative pipeline may ask the server nothing
(Spark's ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION), neither which columns a frame has nor which
type a schema in DDL is: what is asked elsewhere is known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.source.ddl import DdlError, read_ddl
from ottla.pipelines.source.fields import type_of

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

    from ottla.pipelines.source.source import Source

_PLACE: Final = "Over Spark Connect, as in a declarative pipeline,"


def require_own_query(starting: Any, registry: Any) -> None:
    """Raise PipelineError for arguments that ask something of Spark's JVM or of a sink of Ottla."""
    if starting == "table":
        raise PipelineError(
            f"{_PLACE} no table of to_delta tells where a query starts: starting='earliest', "
            "'latest', a time or offsets. Later runs go on from the checkpoint"
        )
    if registry is not None:
        raise PipelineError(
            f"{_PLACE} a schema registry cannot be used: its schemas are read through the JVM of "
            "Spark's driver. Give the schema, or read the topic in a pipeline of Ottla"
        )


def require_all_rows(source: Source) -> None:
    """Raise PipelineError if rows that do not parse would be left out, which nobody would see."""
    if source.can_reject:
        raise PipelineError(
            f"{_PLACE} nothing counts or keeps the rows that do not parse: "
            "topic(..., rejects='keep') has them with the column reason; "
            "where('reason IS NULL') leaves them out, and rejected(...) has them for another table"
        )


def read_schema_text(schema: str, argument: str) -> DataType:
    """Return the type of a schema in DDL. Raises PipelineError, naming the argument."""
    try:
        kind = read_ddl(schema)
    except DdlError as error:
        raise PipelineError(f"{argument}={schema!r} is no schema: {error}") from error
    if kind is None:
        raise PipelineError(
            f"{_PLACE} {argument}={schema!r} cannot be read: only Spark's JVM can tell what "
            "it is: give it as a StructType of pyspark.sql.types"
        )
    return type_of(kind)
