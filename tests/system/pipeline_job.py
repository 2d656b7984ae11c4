"""A pipeline as a user would write it, run as a process of its own so that it can be killed.

`python -m tests.system.pipeline_job BOOTSTRAP TOPIC FOLDER [--delivery NAME] [--starting WHERE]
[--table append|upsert|history] [--sink delta|iceberg|files|database] [--url URL]
[--die MOMENT [--seed N]] [--pause MOMENT ...] [--streamed]`

The database is that of `components.postgres`, whose driver is in the cache.

Without `--die` and `--pause` it takes all there is, then prints what the tables and the group hold,
as JSON. With `--die`, the second batch kills this process and its JVM, with SIGKILL, at that
moment. With `--pause`, every second batch waits at the next of these moments while there is the
file FOLDER/paused, which it creates; the job does not end.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.pipelines.jars import iceberg

from components import postgres
from ottla.pipelines import (
    report_progress,
    session,
    to_delta,
    to_files,
    to_iceberg,
    to_postgresql,
    topic,
)
from ottla.pipelines.progress.reporter import Reporter
from ottla.pipelines.run.batch import BatchRunner
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.files.sink import FilesSink
from ottla.pipelines.sinks.iceberg.sink import IcebergSink
from ottla.pipelines.sinks.postgresql import sink as postgresql
from ottla.pipelines.sinks.postgresql.sink import JdbcSink
from ottla.pipelines.spark.jvm.jdbc_connection import Connection

SCHEMA = "id BIGINT NOT NULL"
TABLES: dict[str, dict[str, Any]] = {
    "append": {},
    "upsert": {"keys": ["id"]},
    "history": {"keys": ["id"], "history": True},
}
SINKS: dict[str, Any] = {
    "delta": DeltaSink,
    "iceberg": IcebergSink,
    "files": FilesSink,
    "database": JdbcSink,
}
GROUP = "pipeline"
SETTINGS = {
    "spark.ui.enabled": False,
    "spark.ui.showConsoleProgress": False,
    "spark.sql.shuffle.partitions": 2,
    "spark.databricks.delta.snapshotPartitions": 1,
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
# A seeded moment lies within this time from the second batch on: some batches long.
MAX_DELAY_S = 3.0


def die() -> None:
    """Kill Python and the JVM at once: they are one process group."""
    os.killpg(os.getpgid(0), signal.SIGKILL)


def pause(sign: Path) -> None:
    """Create the file and wait until another process has deleted it."""
    sign.touch()
    while sign.exists():
        time.sleep(0.01)


def stream_each_batch() -> None:
    """Copies each batch into a database while Spark computes it, as after a large one."""

    def refuse(_: Any) -> Any:
        raise AssertionError("a batch is not streamed")

    sink: Any = postgresql
    sink.STREAMED_BYTES, sink.chunks_of = 0, refuse


def kill_jvm(spark: Any) -> None:
    os.kill(int(spark._jvm.java.lang.ProcessHandle.current().pid()), signal.SIGKILL)


class Moment:
    """Where a batch of this run dies or pauses: the one that is written as number `nth`."""

    def __init__(
        self,
        moment: str,
        sink: str,
        table: Path,
        seed: int = 0,
        act: Callable[[], None] = die,
        nth: int = 2,
    ) -> None:
        self.kind = SINKS[sink]
        self.table = table
        self.seed = seed
        self.act = act
        self.nth = nth
        self.batches = 0
        chosen: dict[str, Callable[[], None]] = {
            "before the commit": self.before_commit,
            "inside the copy": self.inside_copy,
            "inside the commit": self.inside_commit,
            "between tables": self.between_tables,
            "before the checkpoint": self.before_checkpoint,
            "between batches": self.between_batches,
            "seeded": self.seeded,
            "jvm": self.jvm,
            "python": self.python,
        }
        chosen[moment]()

    def _around_write(
        self,
        before: Callable[[Any], None] = lambda sink: None,
        after: Callable[[Any], None] = lambda sink: None,
    ) -> None:
        """Call these around the write of the chosen batch into the table itself."""
        write = self.kind.write

        def counted(sink: Any, frame: Any, batch: Any) -> Any:
            if sink.short_name != self.table.name:
                return write(sink, frame, batch)
            self.batches += 1
            if self.batches == self.nth:
                before(sink)
            version = write(sink, frame, batch)
            if self.batches == self.nth:
                after(sink)
            return version

        self.kind.write = counted

    def before_commit(self) -> None:
        """When the batch is planned and nothing of it is written."""
        self._around_write(before=lambda sink: self.act())

    def inside_copy(self) -> None:
        """While a database takes the rows: its COPY has begun and not ended."""
        self._instead_of("copy", self._act_in_copy)

    def _instead_of(self, name: str, act: Callable[..., None]) -> None:
        """Call a function in place of a method of the connection, once."""
        method = getattr(Connection, name)

        def once(connection: Connection, *arguments: Any) -> None:
            setattr(Connection, name, method)
            act(connection, *arguments)

        self._around_write(before=lambda sink: setattr(Connection, name, once))

    def _act_and_commit(self, connection: Connection) -> None:
        self.act()
        connection.commit()

    def _act_in_copy(self, connection: Connection, statement: str, chunks: Any) -> None:
        def acting() -> Iterator[Any]:
            yield from itertools.islice(chunks, 1)
            self.act()
            yield from chunks

        connection.copy(statement, acting())

    def inside_commit(self) -> None:
        """While the batch is written: there is a new data file and no commit yet.

        In a database there are the rows, in a transaction that is not committed.
        """
        if self.kind is JdbcSink:
            self._instead_of("commit", self._act_and_commit)
            return

        files = self.table / "data" if self.kind is IcebergSink else self.table

        def watch(known: int) -> None:
            while len(list(files.glob("*.parquet"))) == known:
                time.sleep(0.000_5)
            self.act()

        def start(sink: Any) -> None:
            known = len(list(files.glob("*.parquet")))
            threading.Thread(target=watch, args=(known,), daemon=True).start()

        self._around_write(before=start)

    def between_tables(self) -> None:
        """When the table has the batch, but that of the rejected rows and Spark know nothing."""
        self._around_write(after=lambda sink: self.act())

    def before_checkpoint(self) -> None:
        """When all is written and Spark has not noted yet that the batch is done."""
        call = BatchRunner.__call__

        def second(runner: BatchRunner, frame: Any, number: int) -> None:
            call(runner, frame, number)
            self.batches += 1
            if self.batches == self.nth:
                self.act()

        runner_class: Any = BatchRunner
        runner_class.__call__ = second

    def between_batches(self) -> None:
        """When Spark is done with a batch and the group does not know it yet."""
        progressed = Reporter.progressed

        def second(reporter: Reporter, text: str) -> None:
            self.batches += "addBatch" in text
            if self.batches == self.nth:
                self.act()
            progressed(reporter, text)

        reporter_class: Any = Reporter
        reporter_class.progressed = second

    def _later(self, act: Callable[[Any], None]) -> None:
        delay_s = random.Random(self.seed).uniform(0, MAX_DELAY_S)

        def start(sink: Any) -> None:
            threading.Timer(delay_s, act, [sink]).start()

        self._around_write(before=start)

    def seeded(self) -> None:
        """Some time after the second batch has begun, in whatever batch that is."""
        self._later(lambda sink: self.act())

    def jvm(self) -> None:
        """The JVM alone, some time after the second batch has begun."""
        self._later(lambda sink: kill_jvm(sink.spark))

    def python(self) -> None:
        """Python alone, some time after the second batch has begun: the JVM ends by itself."""
        self._later(lambda sink: os.kill(os.getpid(), signal.SIGKILL))


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "topic", "folder"):
        parser.add_argument(name)
    parser.add_argument("--delivery", default="exactly-once")
    parser.add_argument("--starting", default="earliest")
    parser.add_argument("--table", default="append", choices=list(TABLES))
    parser.add_argument("--sink", default="delta", choices=list(SINKS))
    parser.add_argument("--url", default="")
    parser.add_argument("--streamed", action="store_true")
    parser.add_argument("--die")
    parser.add_argument("--pause", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.streamed:
        stream_each_batch()
    folder = Path(chosen.folder)
    lake = folder / "warehouse" / "db" if chosen.sink == "iceberg" else folder
    if chosen.die:
        Moment(chosen.die, chosen.sink, lake / "table", chosen.seed)
    for number, moment in enumerate(chosen.pause, start=1):
        act = functools.partial(pause, folder / "paused")
        Moment(moment, chosen.sink, lake / "table", act=act, nth=2 * number)

    settings = dict(SETTINGS)
    if chosen.sink == "database":
        settings["spark.driver.extraClassPath"] = str(postgres.fetched_driver())
    if chosen.sink == "iceberg":
        settings["spark.sql.catalog.lake"] = "org.apache.iceberg.spark.SparkCatalog"
        settings["spark.sql.catalog.lake.type"] = "hadoop"
        settings["spark.sql.catalog.lake.warehouse"] = str(folder / "warehouse")
    jars = iceberg() if chosen.sink == "iceberg" else None
    spark = session("job", master="local[2]", jars=jars, conf=settings)
    spark.sparkContext.setLogLevel("ERROR")
    report_progress(spark, bootstrap_servers=chosen.bootstrap, group=GROUP)
    where = {"bootstrap_servers": chosen.bootstrap, "starting": chosen.starting}
    if chosen.table == "append":
        frame = topic(spark, chosen.topic, schema=SCHEMA, **where)
        rows = frame.select("value.*", "partition", "offset")
    else:
        frame = topic(
            spark, chosen.topic, key_schema=SCHEMA, schema="n BIGINT", tombstones="mark", **where
        )
        rows = frame.select("key.id", "value.n", "partition", "offset", "timestamp", "tombstone")
    how: dict[str, Any] = {
        "checkpoint": folder / "checkpoint",
        "delivery": chosen.delivery,
        "trigger": None if chosen.die or chosen.pause else {"availableNow": True},
        **TABLES[chosen.table],
    }
    login = {"url": chosen.url, "user": postgres.USER, "password": postgres.PASSWORD}
    if chosen.sink == "database":
        query = to_postgresql(rows, "table", **login, **how)
    elif chosen.sink == "iceberg":
        query = to_iceberg(rows, "lake.db.table", **how)
    elif chosen.sink == "files":
        query = to_files(rows, folder / "table", **how)
    else:
        query = to_delta(rows, folder / "table", **how)
    query.awaitTermination()

    def read(name: str) -> list[Any]:
        if chosen.sink == "database":
            options = {**login, "driver": "org.postgresql.Driver"}
            tables = spark.read.format("jdbc").options(**options, dbtable="pg_class").load()
            if not tables.where(f"relname = '{name}'").count():
                return []
            reader = spark.read.format("jdbc").options(**options, dbtable=f'"{name}"')
            return list(reader.load().collect())
        if not (lake / name).exists():
            return []
        if chosen.sink == "iceberg":
            return list(spark.table(f"lake.db.{name}").collect())
        kind = "parquet" if chosen.sink == "files" else "delta"
        return list(spark.read.format(kind).load(f"{folder}/{name}").collect())

    print(json.dumps(found(spark, folder, read, has_versions=chosen.sink == "delta")), flush=True)
    return 0


def found(
    spark: Any, folder: Path, read: Callable[[str], list[Any]], *, has_versions: bool
) -> dict[str, Any]:
    """Return what the tables hold, and the Java that ran this."""
    positions: dict[str, list[list[int]]] = {}
    for name in ("table", "table_rejected"):
        rows = read(name)
        positions[name] = sorted([row["partition"], row["offset"]] for row in rows)
        if name == "table":
            positions["ids"] = sorted([row["id"]] for row in rows)
            keyed = [one for one in ("id", "n", "partition", "offset") if rows and one in rows[0]]
            current = [row for row in rows if "is_current" not in row or row["is_current"]]
            positions["current"] = sorted([row[one] for one in keyed] for row in current)
    return {
        "positions": positions,
        "versions": versions(spark, folder / "table") if has_versions else {},
        "java": spark._jvm.System.getProperty("java.home"),
    }


def versions(spark: Any, table: Path) -> dict[str, dict[str, int]]:
    """Return for each version of the table the next offset after it, by partition."""
    latest = spark.sql(f"DESCRIBE HISTORY delta.`{table}` LIMIT 1").first()["version"]
    reader = spark.read.format("delta").option("versionAsOf", latest)
    rows = reader.load(str(table)).groupBy("partition").max("offset").collect()
    return {str(latest): {str(row[0]): row[1] + 1 for row in rows}}


if __name__ == "__main__":
    sys.exit(main())
