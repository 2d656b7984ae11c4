"""What Avro's own classes and Spark's say of Avro schemas, asked in the JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.jvm.attributes import java_class
from ottla.pipelines.spark.jvm.classes import why_not_loaded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_SHOWN: Final = 200


class AvroSchema(Protocol):
    """Avro's own Schema, by its own names."""

    def getFullName(self) -> str: ...  # noqa: N802


class AvroClasses:
    """The classes of one session. Raises PipelineError where spark-avro is not there."""

    def __init__(self, spark: SparkSession) -> None:
        if why_not_loaded(spark, "org.apache.spark.sql.avro.AvroDataToCatalyst") is not None:
            raise PipelineError(
                "Spark's module for Avro is not on its class path: start Spark with "
                "session(..., formats=['avro']), or add the package "
                f"org.apache.spark:spark-avro_2.13:{spark.version}"
            )
        self._spark = spark

    def parse(self, text: str, shown: str) -> AvroSchema:
        """Return Avro's own object for a schema. Raises PipelineError."""
        from py4j.protocol import Py4JJavaError

        try:
            parser = java_class(self._spark, "org.apache.avro.Schema$Parser")()
            found: AvroSchema = parser.parse(text)
        except Py4JJavaError as error:
            raise PipelineError(f"{shown} is no Avro schema: {_words(error)}") from error
        return found

    def spark_type(self, schema: AvroSchema, shown: str) -> str:
        """Return the JSON of the type that Spark has for a schema. Raises PipelineError."""
        from py4j.protocol import Py4JJavaError

        try:
            converters = java_class(self._spark, "org.apache.spark.sql.avro.SchemaConverters")
            return str(converters.toSqlType(schema).dataType().json())
        except Py4JJavaError as error:
            raise PipelineError(f"Spark has no type for {shown}: {_words(error)}") from error

    def conflict(self, reader: AvroSchema, writer: AvroSchema) -> str | None:
        """Return why data of the writer's schema cannot be read, None where it can."""
        checker = java_class(self._spark, "org.apache.avro.SchemaCompatibility")
        found = checker.checkReaderWriterCompatibility(reader, writer).getResult()
        problems = found.getIncompatibilities()
        if not len(problems):
            return None
        first = problems[0]
        kind = str(first.getType().name()).lower().replace("_", " ")
        location = str(first.getLocation()).removeprefix("/fields/0/type")
        return f"{kind} at {location or '/'}: {str(first.getMessage())[:MAX_SHOWN]}"


def _words(error: Any) -> str:
    text = str(error.java_exception.getMessage() or error.java_exception.getClass().getName())
    return " ".join(text.split())[:MAX_SHOWN]
