"""Connections to a database by the JVM's own driver, on the Spark driver.

Rows never pass through Python: Spark gives the text of COPY in Arrow's format, where the values of
a column lie one after the other, and Java writes them to the connection. No package of Python is
needed, and no jar on the executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.jdbc_settings import Database

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DRIVER: Final = "org.postgresql.Driver"
PACKAGE: Final = "org.postgresql:postgresql:42.7.7"

_COPY_STREAM: Final = "org.postgresql.copy.PGCopyOutputStream"
_COPY_BUFFER_BYTES: Final = 1 << 16
# Few enough that rows of 100 KB take less memory than the heap, enough to make calls rare.
_LINES_A_CHUNK: Final = 4_000
_NOT_COMPRESSED: Final = -1
_ARROW_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"


class Connection:
    """One transaction of a database, which ends with `commit`, or with nothing done.

    Methods raise py4j's Py4JJavaError, whose cause is Java's SQLException.
    """

    def __init__(self, spark: SparkSession, database: Database) -> None:
        self._jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        properties = self._jvm.java.util.Properties()
        for name, value in database.properties().items():
            properties.setProperty(name, value)
        self._java: Any = _driver(spark).connect(database.url, properties)
        self._java.setAutoCommit(False)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection; the database rolls back what is not committed.

        There is no ROLLBACK: in the middle of a COPY the driver would wait for its end.
        """
        self._java.close()

    def execute(self, statement: str, *values: str) -> int:
        """Run a statement with its values as text; return how many rows it changed."""
        prepared = self._prepared(statement, values)
        try:
            return max(0, int(prepared.executeUpdate()))
        finally:
            prepared.close()

    def query(self, statement: str, *values: str) -> list[tuple[str | None, ...]]:
        """Return the rows of a query as text."""
        prepared = self._prepared(statement, values)
        try:
            found = prepared.executeQuery()
            width = range(1, found.getMetaData().getColumnCount() + 1)
            rows = []
            while found.next():
                rows.append(tuple(found.getString(column) for column in width))
            return rows
        finally:
            prepared.close()

    def copy(self, statement: str, chunks: Iterable[Any]) -> None:
        """Run a COPY with the text in some of Arrow's buffers."""
        stream = self._copy_stream(statement)
        for chunk in chunks:
            chunk.getBytes(0, stream, int(chunk.readableBytes()))
        stream.close()

    def _copy_stream(self, statement: str) -> Any:
        """Return a stream into a COPY; its class is that of the driver, wherever that came from."""
        loader = self._java.getClass().getClassLoader()
        kind = self._jvm.java.lang.Class.forName(_COPY_STREAM, True, loader)
        made = next(one for one in kind.getConstructors() if _takes_connection(one))
        arguments = self._gateway.new_array(self._jvm.Object, 3)
        arguments[0], arguments[1], arguments[2] = self._java, statement, _COPY_BUFFER_BYTES
        return made.newInstance(arguments)

    def commit(self) -> None:
        """Make what was done visible, all at once."""
        self._java.commit()

    def _prepared(self, statement: str, values: tuple[str, ...]) -> Any:
        prepared = self._java.prepareStatement(statement)
        for number, value in enumerate(values, start=1):
            prepared.setString(number, value)
        return prepared


def _takes_connection(constructor: Any) -> bool:
    kinds = [str(kind.getSimpleName()) for kind in constructor.getParameterTypes()]
    return kinds == ["PGConnection", "String", "int"]


def chunks_of(texts: DataFrame) -> Iterator[Any]:
    """Return the texts of a frame with one column, one after the other, in Arrow's buffers.

    A buffer is valid until the next one is asked for. As many partitions as there are cores are
    computed and held by the driver at a time.
    """
    spark = texts.sparkSession
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    before = spark.conf.get(_ARROW_ROWS)
    spark.conf.set(_ARROW_ROWS, str(_LINES_A_CHUNK))
    try:
        batches = texts._jdf.toArrowBatchRdd().toJavaRDD()
    finally:
        spark.conf.set(_ARROW_ROWS, str(before))
    count, cores = int(batches.getNumPartitions()), spark.sparkContext.defaultParallelism
    allocator = jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
    for first in range(0, count, cores):
        wanted = range(first, min(first + cores, count))
        numbers = gateway.new_array(jvm.int, len(wanted))
        for index, number in enumerate(wanted):
            numbers[index] = number
        found = batches.collectPartitions(numbers)
        for index in range(len(wanted)):
            yield from _texts(jvm, gateway, found[index].toArray(), allocator)


def _texts(jvm: Any, gateway: Any, batches: Any, allocator: Any) -> Iterator[Any]:
    """Return the only column's values of some of Arrow's batches: a Java array of byte arrays.

    py4j would copy a byte array to Python and back, so Java itself passes each one on. Raises
    PipelineError where they are compressed.
    """
    stream_of = jvm.java.lang.Class.forName("java.io.ByteArrayInputStream").getConstructors()
    stream_of = next(one for one in stream_of if len(one.getParameterTypes()) == 1)
    ipc = jvm.org.apache.arrow.vector.ipc
    argument = gateway.new_array(jvm.Object, 1)
    for number in range(len(batches)):
        jvm.System.arraycopy(batches, number, argument, 0, 1)
        channel = jvm.java.nio.channels.Channels.newChannel(stream_of.newInstance(argument))
        batch = ipc.message.MessageSerializer.deserializeRecordBatch(
            ipc.ReadChannel(channel), allocator
        )
        try:
            if number == 0 and batch.getBodyCompression().getCodec() != _NOT_COMPRESSED:
                raise PipelineError(
                    "to_jdbc cannot read what Spark compresses for Arrow: leave out the setting "
                    "spark.sql.execution.arrow.compression.codec"
                )
            # Which values are null, where each begins, and the values.
            yield batch.getBuffers().get(2)
        finally:
            batch.close()


def _driver(spark: SparkSession) -> Any:
    """Return the database's driver. Raises PipelineError where its jar is not there."""
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm
    # The second one has the jars that were added to a session that runs (ADD JAR).
    loaders = (
        jvm.Thread.currentThread().getContextClassLoader(),
        spark._jsparkSession.sharedState().jarClassLoader(),
    )
    for loader in loaders:
        try:
            return jvm.java.lang.Class.forName(DRIVER, True, loader).newInstance()
        except Py4JJavaError as error:
            if "ClassNotFoundException" not in str(error):
                raise
    raise PipelineError(
        "Spark has no driver for PostgreSQL on its class path: start it with "
        f"session(..., packages=['{PACKAGE}']), or packages = [\"{PACKAGE}\"] in [spark]"
    )
