"""The texts of a frame as Arrow's buffers in the JVM, for a Java stream to take.

Rows never pass through Python: Spark gives the texts in Arrow's format, where the values of a
column lie one after the other, and Java writes a buffer of them to a stream.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.jvm.attributes import gateway, java_class, java_frame

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

# Few enough that rows of 100 KB take less memory than the heap, enough to make calls rare.
_LINES_A_CHUNK: Final = 4_000
_NOT_COMPRESSED: Final = -1
_IPC: Final = "org.apache.arrow.vector.ipc"
_ARROW_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"


class ArrowBuffer(Protocol):
    """Java's ArrowBuf, by its own names: bytes that Java writes to a Java stream."""

    def readableBytes(self) -> int: ...  # noqa: N802
    def getBytes(self, index: int, stream: Any, length: int) -> Any: ...  # noqa: N802


class Texts(NamedTuple):
    """The texts of some rows, one after the other."""

    buffer: ArrowBuffer
    rows: int


def chunks_of(texts: DataFrame) -> Iterator[Texts]:
    """Return the texts of a frame with one column, one after the other, in Arrow's buffers.

    A buffer is valid until the next one is asked for. As many partitions as there are cores are
    computed and held by the driver at a time. Raises PipelineError where Spark compresses them.
    """
    spark = texts.sparkSession
    batches = arrow_batches(texts)
    count, cores = int(batches.getNumPartitions()), spark.sparkContext.defaultParallelism
    java = reader_of(spark.sparkContext)
    for first in range(0, count, cores):
        found = batches.collectPartitions(java.ints(range(first, min(first + cores, count))))
        for partition in found:
            yield from java.all_texts(partition.toArray())


def arrow_batches(texts: DataFrame) -> Any:
    """Return the JVM's RDD of byte arrays: a frame in Arrow's batches, as IPC has them."""
    spark = texts.sparkSession
    before = spark.conf.get(_ARROW_ROWS)
    spark.conf.set(_ARROW_ROWS, str(_LINES_A_CHUNK))
    try:
        return java_frame(texts).toArrowBatchRdd().toJavaRDD()
    finally:
        spark.conf.set(_ARROW_ROWS, str(before))


@dataclass(frozen=True, slots=True)
class BatchReader:
    """Java's classes and methods that read Arrow's batches.

    To find a class the JVM looks into each jar: they are looked up once.
    """

    new_ints: Callable[[int], Any]
    new_arguments: Callable[[], Any]
    copy_array: Callable[..., Any]
    bytes_stream: Any
    new_channel: Callable[[Any], Any]
    read_channel: Callable[[Any], Any]
    read_batch: Callable[[Any, Any], Any]
    allocator: Any

    def ints(self, numbers: range) -> Any:
        """Return a Java array of numbers."""
        array = self.new_ints(len(numbers))
        for index, number in enumerate(numbers):
            array[index] = number
        return array

    def all_texts(self, batches: Any) -> Iterator[Texts]:
        """Return the only column's values of some of Arrow's batches: a Java array of byte arrays.

        py4j would copy a byte array to Python and back, so Java itself passes each one on. Raises
        PipelineError where they are compressed.
        """
        arguments = self.new_arguments()
        for number in range(len(batches)):
            self.copy_array(batches, number, arguments, 0, 1)
            yield from self.texts(self.bytes_stream.newInstance(arguments))

    def texts(self, source: Any) -> Iterator[Texts]:
        """Return the only column's values of the batch in a Java stream; raises the same."""
        channel = self.read_channel(self.new_channel(source))
        batch = self.read_batch(channel, self.allocator)
        try:
            if batch.getBodyCompression().getCodec() != _NOT_COMPRESSED:
                raise PipelineError(
                    "to_postgresql cannot read what Spark compresses for Arrow: leave out the "
                    "setting spark.sql.execution.arrow.compression.codec"
                )
            # Which values are null, where each begins, and the values.
            yield Texts(batch.getBuffers().get(2), int(batch.getLength()))
        finally:
            batch.close()


@functools.lru_cache(maxsize=1)
def reader_of(context: SparkContext) -> BatchReader:
    """Return the reader of a session's JVM."""
    classes = java_class(context, "java.lang.Class")
    streams = classes.forName("java.io.ByteArrayInputStream").getConstructors()
    return BatchReader(
        functools.partial(gateway().new_array, java_class(context, "int")),
        functools.partial(gateway().new_array, java_class(context, "java.lang.Object"), 1),
        java_class(context, "java.lang.System").arraycopy,
        next(one for one in streams if len(one.getParameterTypes()) == 1),
        java_class(context, "java.nio.channels.Channels").newChannel,
        java_class(context, f"{_IPC}.ReadChannel"),
        java_class(context, f"{_IPC}.message.MessageSerializer").deserializeRecordBatch,
        java_class(context, "org.apache.spark.sql.util.ArrowUtils").rootAllocator(),
    )
