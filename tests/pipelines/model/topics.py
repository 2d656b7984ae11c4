"""A topic with transactions and the commits of groups, for `sinks.topic.sink` and its tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from pyspark.errors import PySparkException
from tests.pipelines.model.spark import Frame

from ottla.pipelines.kafka.brokers import ClusterState, TopicState
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.sinks.topic.sink import TopicSink, TopicTarget
from ottla.pipelines.sinks.topic.sink import group_of as group_of

KAFKA = read_settings("b:9092")
NAME = "out"
PARTITIONS = 2
COLUMNS = SimpleNamespace(
    made_for=lambda frame: SimpleNamespace(schema=frame.schema, records=lambda rows: rows)
)

RUNNING: list[Any] = []
"""The sessions whose tasks run, or that begin a whole batch, the innermost last."""


@dataclass
class TopicStore:
    """A topic: what is committed in it, and the marks of groups."""

    id: str
    records: list[Any] = field(default_factory=list)
    marks: dict[tuple[str, int], str] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)


class TopicTargets:
    """One topic that is written."""

    can_start_from_table = False

    def __init__(self, world: Any) -> None:
        self._world = world
        self.store = TopicStore("")

    def make(self, path: str) -> None:
        self.store = TopicStore(self._world.new_id("out"))

    def rows(self, path: str) -> tuple[Any, ...]:
        return tuple(self.store.records)

    def append(self, frame: Frame, location: str, options: dict[str, Any]) -> None:
        """Spark's own sink."""
        self._world.steps.step(frame.sparkSession)
        self.store.records += frame.rows

    def sink(self, session: Any, path: str) -> TopicSink:
        target = TopicTarget(NAME, KAFKA, COLUMNS)  # type: ignore[arg-type]
        return TopicSink(session, target, f"/cp/{self._world.starting.checkpoint}")

    def look_up(self, kafka: Any, names: Any) -> ClusterState:
        offsets = dict.fromkeys(range(PARTITIONS), 0)
        return ClusterState("cluster", {NAME: TopicState(NAME, self.store.id, offsets, offsets)})


class FakeProducer:
    """A transactional producer: each request is a step."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._session = RUNNING[-1]
        self._store: TopicStore = self._session.world.target.store
        self._id = settings["transactional.id"]
        self._rows: list[Any] = []
        self._mark: tuple[tuple[str, int], str] | None = None
        self._epoch = 0

    def _step(self) -> None:
        self._session.world.steps.step(self._session)

    def init_transactions(self, timeout_s: float) -> None:
        self._step()
        self._epoch = self._store.epochs.get(self._id, 0) + 1
        self._store.epochs[self._id] = self._epoch

    def begin_transaction(self) -> None: ...

    def abort_transaction(self, timeout_s: float) -> None: ...

    def produce(self, topic: str, value: bytes, key: Any, headers: Any) -> None:
        self._rows.append(tuple(json.loads(value)))

    def poll(self, timeout_s: float) -> None: ...

    def flush(self, timeout_s: float) -> int:
        return 0

    def send_offsets_to_transaction(self, offsets: Any, group: str, timeout_s: float) -> None:
        (at,) = offsets
        self._mark = (group, at.partition), at.metadata

    def commit_transaction(self, timeout_s: float) -> None:
        self._step()
        if self._store.epochs[self._id] != self._epoch:
            raise KafkaException(KafkaError(KafkaError._FENCED))
        self._store.records += self._rows
        if self._mark is not None:
            at, metadata = self._mark
            self._store.marks[at] = metadata


class FencedError(PySparkException):
    """Java's ProducerFencedException, as the driver gets it."""


class FakeBatchProducer:
    """`sinks.topic.jvm.BatchProducer`: the transaction of a whole batch, each request a step."""

    def __init__(self, session: Any, settings: Any) -> None:
        self._session = session
        self._store: TopicStore = session.world.target.store
        self._id = settings["transactional.id"]
        self._rows: tuple[Any, ...] = ()
        self._epoch = 0

    def start(self) -> None:
        self._session.world.steps.step(self._session)
        self._epoch = self._store.epochs.get(self._id, 0) + 1
        self._store.epochs[self._id] = self._epoch

    def is_shared(self) -> bool:
        return True

    def begin(self) -> None: ...

    def write(self, records: Frame, topic: str) -> None:
        self._session.world.steps.step(self._session)
        self._rows = records.rows

    def commit(self, group: str, topic: str, partitions: Any, metadata: str) -> None:
        self._session.world.steps.step(self._session)
        if self._store.epochs[self._id] != self._epoch:
            raise FencedError("fenced")
        self._store.records += self._rows
        for number in partitions:
            self._store.marks[group, number] = metadata

    def abort(self) -> None: ...

    def close(self) -> None: ...


def computes_once(records: Frame) -> bool:
    """Whether a run writes a batch as a whole: another run may write it by tasks."""
    number: int = records.sparkSession.number
    return (number + len(records.rows)) % 3 > 0


def running(write: Callable[..., bool]) -> Callable[..., bool]:
    """Let the clients that this session's driver makes be known as its own."""

    def write_as_session(whole: Any, *of: Any) -> bool:
        RUNNING.append(whole.spark)
        try:
            return write(whole, *of)
        finally:
            RUNNING.pop()

    return write_as_session


class FakeConsumer:
    """Reads the commits of a group."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._session = RUNNING[-1]
        self._group = settings["group.id"]

    def committed(self, offsets: Any, timeout_s: float) -> list[Any]:
        marks = self._session.world.target.store.marks
        return [
            SimpleNamespace(error=None, metadata=marks.get((self._group, at.partition)))
            for at in offsets
        ]

    def consumer_group_metadata(self) -> str:
        return self._group

    def close(self) -> None: ...


@dataclass
class Tasks:
    """Records in tasks by their content: `sinks.topic.in_tasks` and `fields_of`."""

    session: Any
    rows: list[list[Any]]
    write: Callable[[int, Any], Iterator[int]] | None = None

    def mapPartitionsWithIndex(self, write: Any) -> Tasks:  # noqa: N802
        return Tasks(self.session, self.rows, write)

    def collect(self) -> list[int]:
        assert self.write is not None
        found: list[int] = []
        RUNNING.append(self.session)
        try:
            for number, rows in enumerate(self.rows):
                fields: list[bytes | None] = []
                for row in rows:
                    fields += [None, json.dumps(row).encode(), None]
                found += self.write(number, fields)
        finally:
            RUNNING.pop()
        return found


def in_tasks(records: Frame, tasks: int) -> Tasks:
    rows: list[list[Any]] = [[] for _ in range(tasks)]
    for row in records.rows:
        rows[(row[1] * 7 + row[2] * 5 // 3) % tasks].append(row)
    return Tasks(records.sparkSession, rows)
