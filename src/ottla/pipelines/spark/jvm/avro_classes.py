"""What Avro's own classes and Spark's say of Avro schemas, asked in the JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_SHOWN: Final = 200


class AvroClasses:
    """The classes of one session. Raises PipelineError where spark-avro is not there."""

    def __init__(self, spark: SparkSession) -> None:
        require_class(spark, "org.apache.spark.sql.avro.AvroDataToCatalyst", "avro")
        self._jvm: Any = spark._jvm

    def parse(self, text: str, shown: str) -> Any:
        """Return Avro's own object for a schema. Raises PipelineError."""
        from py4j.protocol import Py4JJavaError

        try:
            return getattr(self._jvm.org.apache.avro, "Schema$Parser")().parse(text)
        except Py4JJavaError as error:
            raise PipelineError(f"{shown} is no Avro schema: {_words(error)}") from error

    def spark_type(self, schema: Any, shown: str) -> str:
        """Return the JSON of the type that Spark has for a schema. Raises PipelineError."""
        from py4j.protocol import Py4JJavaError

        try:
            converters = self._jvm.org.apache.spark.sql.avro.SchemaConverters
            return str(converters.toSqlType(schema).dataType().json())
        except Py4JJavaError as error:
            raise PipelineError(f"Spark has no type for {shown}: {_words(error)}") from error

    def conflict(self, reader: Any, writer: Any) -> str | None:
        """Return why data of the writer's schema cannot be read, None where it can."""
        checker = self._jvm.org.apache.avro.SchemaCompatibility
        found = checker.checkReaderWriterCompatibility(reader, writer).getResult()
        problems = found.getIncompatibilities()
        if not len(problems):
            return None
        first = problems[0]
        kind = str(first.getType().name()).lower().replace("_", " ")
        place = str(first.getLocation()).removeprefix("/fields/0/type")
        return f"{kind} at {place or '/'}: {str(first.getMessage())[:MAX_SHOWN]}"


def require_class(spark: SparkSession, name: str, format_: str) -> None:
    """Raise PipelineError unless the JVM has a class of Spark's module for a format."""
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName(name, True, loader)
    except Py4JJavaError as error:
        raise PipelineError(
            f"Spark's module for {format_.capitalize()} is not on its class path: start Spark with "
            f"session(..., formats=['{format_}']), or add the package "
            f"org.apache.spark:spark-{format_}_2.13:{spark.version}"
        ) from error


def _words(error: Any) -> str:
    text = str(error.java_exception.getMessage() or error.java_exception.getClass().getName())
    return " ".join(text.split())[:MAX_SHOWN]
