"""Connections to a database by the JVM's own driver, on the Spark driver.

Rows never pass through Python: Java writes Arrow's buffers with the text of COPY to the connection.
No package of Python is needed, and no jar on the executors.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.jvm.attributes import gateway, java_class, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.pipelines.spark.jvm.arrow_texts import Texts

log: Final = logging.getLogger("ottla.pipelines")

DRIVER: Final = "org.postgresql.Driver"
PACKAGE: Final = "org.postgresql:postgresql:42.7.7"

_COPY_STREAM: Final = "org.postgresql.copy.PGCopyOutputStream"
_COPY_BUFFER_BYTES: Final = 1 << 16
# The server ends a session whose other side is gone in about a minute, and frees its locks. The
# keepalives are for a session that waits, the timeout for one whose answer nobody takes. They end
# with the transaction: a pool hands the session on as it was.
KEEPALIVE: Final = {
    "tcp_keepalives_idle": 30,
    "tcp_keepalives_interval": 10,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
# The checkpoint counts a batch as done once its commit returns. With `off` it returns before the
# commit is on the disk, and a crash of the server would take out the last ones, such as the
# rejected rows of a batch without the batch.
_WAIT_FOR_DISK: Final = (
    "DO $$ BEGIN IF current_setting('synchronous_commit') = 'off' THEN "
    "SET LOCAL synchronous_commit = local; END IF; END $$"
)
_SETTINGS: Final = "; ".join(
    (*(f"SET LOCAL {name} = {value}" for name, value in KEEPALIVE.items()), _WAIT_FOR_DISK)
)


@dataclass(frozen=True, slots=True)
class Copied:
    """What a COPY was given, and how many of the rows it has put into the table: a trigger may
    leave some out."""

    bytes: int
    sent: int
    taken: int


class Connection:
    """One transaction of a database, which ends with `commit`, or with nothing done.

    Methods raise py4j's Py4JJavaError, whose cause is Java's SQLException.
    """

    def __init__(self, spark: SparkSession, url: str, settings: Mapping[str, str]) -> None:
        self._driver = _driver(spark)
        properties = self._driver.new_properties()
        for name, value in settings.items():
            properties.setProperty(name, value)
        self._java: Any = self._driver.java.connect(url, properties)
        try:
            self._java.setAutoCommit(False)
            self.execute(_SETTINGS)
        except BaseException:
            self._close()
            raise

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
        self._close()

    def _close(self) -> None:
        """Close the connection. Where the other side is gone the driver fails to, which says
        nothing of the transaction, and must not hide what has failed in it."""
        from py4j.protocol import Py4JJavaError

        try:
            self._java.close()
        except Py4JJavaError as error:
            log.debug("A connection to a database was not closed: %s", error)

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

    def copy(self, statement: str, chunks: Iterable[Texts]) -> Copied:
        """Run a COPY with the text in some of Arrow's buffers."""
        arguments = self._driver.new_arguments()
        arguments[0], arguments[1], arguments[2] = self._java, statement, _COPY_BUFFER_BYTES
        stream = self._driver.copy_stream.newInstance(arguments)
        total = sent = 0
        for buffer, rows in chunks:
            count = int(buffer.readableBytes())
            buffer.getBytes(0, stream, count)
            total += count
            sent += rows
        taken = int(stream.endCopy())
        stream.close()
        return Copied(total, sent, taken)

    def commit(self) -> None:
        """Make what was done visible, all at once."""
        self._java.commit()

    def _prepared(self, statement: str, values: tuple[str, ...]) -> Any:
        prepared = self._java.prepareStatement(statement)
        for number, value in enumerate(values, start=1):
            prepared.setString(number, value)
        return prepared


@dataclass(frozen=True, slots=True)
class _Driver:
    """The driver and Java's methods around it, looked up once."""

    java: Any
    new_properties: Callable[[], Any]
    new_arguments: Callable[[], Any]
    copy_stream: Any


@functools.lru_cache(maxsize=4)
def _driver(spark: SparkSession) -> _Driver:
    """Return the database's driver. Raises PipelineError where its jar is not there."""
    from py4j.protocol import Py4JJavaError

    classes = java_class(spark, "java.lang.Class")
    # The second one has the jars that were added to a session that runs (ADD JAR).
    loaders = (
        java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader(),
        java_session(spark).sharedState().jarClassLoader(),
    )
    for loader in loaders:
        try:
            java = classes.forName(DRIVER, True, loader).newInstance()
        except Py4JJavaError as error:
            if "ClassNotFoundException" not in str(error):
                raise
            continue
        # The loader may be the parent of the one that was asked.
        copy = classes.forName(_COPY_STREAM, True, java.getClass().getClassLoader())
        return _Driver(
            java,
            java_class(spark, "java.util.Properties"),
            functools.partial(gateway().new_array, java_class(spark, "java.lang.Object"), 3),
            next(one for one in copy.getConstructors() if _takes_connection(one)),
        )
    raise PipelineError(
        "Spark has no driver for PostgreSQL on its class path: start it with "
        f"session(..., packages=['{PACKAGE}']), or packages = [\"{PACKAGE}\"] in [spark]"
    )


def _takes_connection(constructor: Any) -> bool:
    kinds = [str(kind.getSimpleName()) for kind in constructor.getParameterTypes()]
    return kinds == ["PGConnection", "String", "int"]
