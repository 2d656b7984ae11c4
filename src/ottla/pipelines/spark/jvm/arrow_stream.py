"""The texts of a frame as Arrow's buffers, while tasks of a local Spark still compute the rest.

`arrow_texts` asks for whole partitions, so who takes the texts waits until they are computed. Here
each task hands on Arrow's batches as they come, so both work at the same time. A batch goes over
a connection of its own to a server socket of the driver's JVM:

    token       32 bytes, so that no other program can hand in rows
    batch       one of Arrow's batches (IPC), until the end of the stream
    answer      `+` once the batch is read: the task goes on while its texts are taken

It needs that Spark computes each row once (`computed_once`), and the compiler of `compiled`.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.jvm.arrow_texts import Texts, arrow_batches, reader_of
from ottla.pipelines.spark.jvm.attributes import java_class
from ottla.pipelines.spark.jvm.compiled import new_object

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HOST: Final = "127.0.0.1"
_TOKEN_BYTES: Final = 32
_TOKEN_WITHIN_MS: Final = 5_000
_TAKEN: Final = ord("+")
_WAITING: Final = 64
"""Tasks whose batches wait: a task has one at a time."""


def streamed(texts: DataFrame) -> Generator[Texts, None, None]:
    """Return the texts of a frame with one column, those of a partition in their order, in Arrow's
    buffers.

    A buffer is valid until the next one is asked for. Raises what the job raises, and PipelineError
    where Spark compresses the texts.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark import inheritable_thread_target

    server = _Server(texts)
    batches = arrow_batches(texts)

    def compute() -> None:
        try:
            # Each batch is read once this returns.
            batches.foreachPartition(server.sender())
        finally:
            server.close()

    with ThreadPoolExecutor(1, thread_name_prefix="ottla-texts") as thread:
        try:
            # In the job group of the query, so that a stop of the query ends this job.
            job = thread.submit(inheritable_thread_target(compute))
            while True:
                try:
                    connection = server.accept()
                except Py4JJavaError:
                    break  # the job has ended, or says why
                yield from server.texts(connection)
        finally:
            # A task that hands on a batch fails, and with it the job.
            server.close()
        job.result()


class _Server:
    """A server socket of the JVM, on this machine alone."""

    def __init__(self, texts: DataFrame) -> None:
        spark = texts.sparkSession
        address = java_class(spark, "java.net.InetAddress").getByName(_HOST)
        self._java = java_class(spark, "java.net.ServerSocket")(0, _WAITING, address)
        self._spark = spark
        self._reader = reader_of(spark.sparkContext)
        self._token = secrets.token_bytes(_TOKEN_BYTES)

    def sender(self) -> Any:
        """Return the Java function that hands on the batches of a partition (`BatchSender`)."""
        port = int(self._java.getLocalPort())
        return new_object(self._spark, "BatchSender", _HOST, port, self._token, _TAKEN)

    def accept(self) -> Any:
        """Wait for a batch. Raises py4j's Py4JJavaError once the server is closed."""
        return self._java.accept()

    def texts(self, connection: Any) -> Iterator[Texts]:
        """Return the texts of the batch that a connection brings, none without the token."""
        try:
            source = connection.getInputStream()
            if self._is_known(connection, source):
                for found in self._reader.texts(source):
                    connection.getOutputStream().write(_TAKEN)
                    yield found
        finally:
            connection.close()

    def _is_known(self, connection: Any, source: Any) -> bool:
        from py4j.protocol import Py4JJavaError

        connection.setSoTimeout(_TOKEN_WITHIN_MS)
        try:
            token = bytes(source.readNBytes(_TOKEN_BYTES))
        except Py4JJavaError:
            return False
        connection.setSoTimeout(0)
        return secrets.compare_digest(token, self._token)

    def close(self) -> None:
        """End `accept`, and refuse who comes."""
        from py4j.protocol import Py4JJavaError

        with contextlib.suppress(Py4JJavaError):
            self._java.close()
