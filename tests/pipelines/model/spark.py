"""A Spark without a JVM: micro-batches of one topic, with the logs that Spark keeps of them.

`offsets/<b>` is written before batch b runs and `commits/<b>` after it, each only if it is not
there yet (`HDFSMetadataLog.add`). A query reads both at its start alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from pyspark.sql.types import LongType, StructField, StructType
from tests.pipelines.model import sql
from tests.pipelines.model.errors import QueryFailedError
from tests.pipelines.model.files import MemoryFiles

from ottla.pipelines.spark.jvm.execution import EARLIEST
from ottla.pipelines.spark.jvm.operators import Operator

SCHEMA = StructType([StructField("id", LongType())])
TOPIC = "t"
_HEAD = json.dumps({"batchTimestampMs": 4_000_000_000_000, "conf": {}})
_ADAPTIVE = "spark.sql.adaptive.enabled"


class Settings(dict[str, str]):
    """`spark.conf`."""

    def set(self, name: str, value: str) -> None:
        self[name] = value

    def unset(self, name: str) -> None:
        self.pop(name, None)


class Session:
    """One process with its Spark session and at most one query."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.dead = False
        self.number = world.sessions = world.sessions + 1
        self.conf = Settings({_ADAPTIVE: "true"})
        self.streams = self
        self.active: list[Any] = []
        self.query: MicroBatches | None = None
        self.sparkContext = self
        self.defaultParallelism = 2
        self.catalog = self
        self.views: dict[str, Frame] = {}

    def sql(self, statement: str) -> Frame:
        """Run a MERGE, or a query over views."""
        views: dict[str, tuple[Sequence[str], tuple[tuple[Any, ...], ...]]] = {
            name: (frame.columns, frame.rows) for name, frame in self.views.items()
        }
        if statement.startswith("MERGE "):
            self.world.target.merge(self, statement, views)
            return Frame(self)
        columns, rows = sql.select(statement, views)
        return Frame(self, rows, tuple(columns))

    def table(self, _: str) -> Any:
        return SimpleNamespace(schema=self.world.table_schema)

    def refreshTable(self, _: str) -> None:  # noqa: N802
        """Tables are read as they are."""

    def dropTempView(self, name: str) -> None:  # noqa: N802
        del self.views[name]


class Frame:
    """A streaming frame of the topic, or a batch of it with `rows`."""

    def __init__(
        self,
        session: Session,
        rows: tuple[Any, ...] = (),
        columns: tuple[str, ...] = (),
        each: int | None = None,
    ) -> None:
        self.each = each  # what is expected: see `rejected`
        self.isStreaming = True
        self.schema = session.world.schema
        self.columns = columns or tuple(self.schema.names)
        self.sparkSession = session
        self.rows = rows
        self.writeStream = Writer(self)
        self.write = Writer(self)

    def select(self, *_: Any) -> Frame:
        return self

    def limit(self, count: int) -> Frame:
        return Frame(self.sparkSession, self.rows[:count])

    def persist(self) -> Frame:
        return self

    def unpersist(self) -> None: ...

    def count(self) -> int:
        return len(self.rows)

    def writeTo(self, name: str) -> Writer:  # noqa: N802
        writer = Writer(self)
        writer.table = name
        return writer

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802
        self.sparkSession.views[name] = self


class Writer:
    """`frame.write` and `frame.writeStream`: each setting gives the writer back."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.settings: dict[str, Any] = {}
        self.table = ""
        self.batch: Callable[[Frame, int], None] | None = None

    def foreachBatch(self, batch: Callable[[Frame, int], None]) -> Writer:  # noqa: N802
        self.batch = batch
        return self

    def option(self, name: str, value: Any) -> Writer:
        self.settings[name] = value
        return self

    def format(self, _: str) -> Writer:
        return self

    def mode(self, _: str) -> Writer:
        return self

    def queryName(self, _: str) -> Writer:  # noqa: N802
        return self

    def trigger(self, **_: Any) -> Writer:
        return self

    def options(self, **options: Any) -> Writer:
        self.settings |= options
        return self

    def save(self, location: str = "") -> None:
        self.frame.sparkSession.world.target.append(self.frame, location, self.settings)

    def append(self) -> None:
        self.save(self.table)

    def start(self) -> MicroBatches:
        assert self.batch is not None
        session = self.frame.sparkSession
        location = self.settings["checkpointLocation"]
        session.query = MicroBatches(session, location, self.batch, self.frame.each)
        return session.query


class MicroBatches:
    """`MicroBatchExecution`: one query, from its start to its end."""

    def __init__(
        self,
        session: Session,
        checkpoint: str,
        batch: Callable[[Frame, int], None],
        each: int | None = None,
    ) -> None:
        self._each = each
        self._session = session
        self._files = MemoryFiles(session, checkpoint)
        self._batch = batch
        self.ends: dict[int, int] = {}
        self.rows: tuple[Any, ...] = ()
        if self._files.read("metadata") is None:
            self._files.create("metadata", json.dumps({"id": session.world.new_query_id()}))
        self.id = str(json.loads(self._files.read("metadata") or "{}")["id"])
        planned, done = self._last("offsets"), self._last("commits")
        self.is_planned = planned is not None and planned != done
        self.number = -1 if planned is None else planned
        if planned is None or (planned == 0 and self.is_planned):
            text = self._files.read("sources/0/0") or ""
            self.at = _offsets(text.partition("\n")[2]) if text else session.world.earliest()
            session.world.begins[self.id] = session.world.topic_id, dict(self.at)
        else:
            self.at = self._planned(planned - 1 if self.is_planned else planned)
            # A query whose state was replaced begins with the offsets that were planned for it.
            session.world.begins.setdefault(self.id, (session.world.topic_id, dict(self.at)))

    def _last(self, folder: str) -> int | None:
        return max((int(name) for name in self._files.names(folder)), default=None)

    def _planned(self, number: int) -> dict[int, int]:
        text = self._files.read(f"offsets/{number}")
        if text is None:
            raise QueryFailedError(f"batch {number} doesn't exist")
        return _offsets(text.splitlines()[2])

    def run(self, most: int) -> bool:
        """Run the next batch with at most so many new records; False where there is none."""
        world = self._session.world
        if self.is_planned:
            self.ends = self._planned(self.number)
        else:
            self.ends = world.next_ends(self.at, most)
            if self.ends == self.at:
                return False
            self.number += 1
            line = json.dumps({TOPIC: {str(p): at for p, at in self.ends.items()}})
            if not self._files.create(f"offsets/{self.number}", f"v1\n{_HEAD}\n{line}"):
                raise QueryFailedError("Concurrent update to the log")
            self.is_planned = True
        self.rows = world.read(self.at, self.ends)
        self._batch(Frame(self._session, self.rows, each=self._each), self.number)
        if not self._files.create(f"commits/{self.number}", "v1\n{}"):
            raise QueryFailedError("Concurrent update to the log")
        self.at, self.is_planned = self.ends, False
        return True


def _offsets(line: str) -> dict[int, int]:
    found = json.loads(line)[TOPIC]
    return {int(partition): offset for partition, offset in found.items()}


class FakeExecution:
    """`spark.jvm.execution.Execution` of the query that runs in a session."""

    def __init__(self, session: Session, query_id: str) -> None:
        assert session.query is not None
        assert session.query.id == query_id
        self._query = session.query

    def ends(self) -> dict[str, dict[int, int]]:
        return {TOPIC: dict(self._query.ends)}

    def range_of(self, topic: str) -> tuple[dict[int, int], dict[int, int]]:
        starts, ends = self._query.at, self._query.ends
        return {number: starts.get(number, EARLIEST) for number in ends}, dict(ends)

    def forget_counted(self) -> None: ...

    def counted(self) -> dict[str, Any]:
        return {}

    def plan(self) -> Operator:
        return Operator(_Node())


class _Node:
    """A node of a plan without state and without children."""

    def metrics(self) -> _Node:
        return self

    def children(self) -> _Node:
        return self

    def contains(self, name: str) -> bool:
        return False

    def size(self) -> int:
        return 0


def nothing(*_: Any, **__: Any) -> Iterator[Any]:
    return iter(())
