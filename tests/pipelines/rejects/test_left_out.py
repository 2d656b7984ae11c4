"""A batch into a topic: how often it is written, and what is said of rows that do not parse."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, StructType

from ottla.pipelines.checkpoint.next_batch import Held, digest
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.destination import Destination
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.rejected_offsets import RejectedOffsets, RejectedRange
from ottla.pipelines.rejects.left_out import LeftOutRows
from ottla.pipelines.run import batch as module
from ottla.pipelines.run.batch import BatchRunner
from ottla.pipelines.sinks.topic.sink import TopicSink, TopicTarget
from ottla.pipelines.source.observed import BLOCKS
from ottla.pipelines.source.source import REJECTED, Source
from ottla.pipelines.target.commit_metadata import CommitMetadata
from ottla.pipelines.target.port import NO_VERSION, Batch

AT_MOST_ONCE = DeliveryGuarantee.AT_MOST_ONCE
KAFKA = read_settings("b:9092")
EMPTY: Any = SimpleNamespace(sparkSession=None, columns=[])
FRAME: Any = SimpleNamespace(
    sparkSession=None, columns=[], limit=lambda count: EMPTY, drop=lambda *_: FRAME
)
METADATA = CommitMetadata("query-1", "query-1", 4, "cluster", {}, {"in": {0: 5}}).text()
ROWS = Source("in", KAFKA, {"value": StructType().add("id", "long")})
FIRST_BLOCK = [(0, 0)]
BYTES = Source("raw", KAFKA, {"value": BinaryType()})


class Checkpoint:
    """A checkpoint in memory; Spark writes the query's id when the query has begun."""

    files = SimpleNamespace(location="file:/cp")

    def __init__(self) -> None:
        self.ids = ["", "query-1"]
        self.begun: dict[str, int] = {}

    def query_id(self) -> str:
        return self.ids.pop(0)

    def noted(self, query_id: str) -> int:
        return self.begun.get(query_id, -1)

    def note(self, query_id: str, number: int) -> None:
        self.begun[query_id] = number

    def promised(self, query_id: str) -> int | None:
        return None


class Topic(TopicSink):
    """A topic in memory; it compares batches with what it holds, as far as a test says that."""

    def __init__(self, world: World) -> None:
        spark: Any = None
        super().__init__(spark, TopicTarget("out", KAFKA), "/cp")
        self._world = world

    def write(self, frame: Any, batch: Batch) -> int:
        self._world.written.append((frame, batch))
        if self._world.failure is not None:
            raise self._world.failure
        return NO_VERSION if self._world.held is None else super().write(frame, batch)

    def held(self, query_id: str) -> Held:
        return self._world.held or Held("topic out", None, None)

    def check_running(self) -> None:
        self._world.check()


class World:
    """A runner whose topic, checkpoint and Spark are in memory."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, delivery: DeliveryGuarantee, *sources: Source
    ) -> None:
        self.written: list[tuple[Any, Batch]] = []
        self.kept: list[Any] = []
        self.counts: dict[str, dict[str, Any]] = {}
        self.checkpoint = Checkpoint()
        self.failure: Exception | None = None
        self.lost: str | None = None
        self.held: Held | None = None
        execution = SimpleNamespace(
            ends=lambda: {"in": {0: 5}},
            range_of=lambda topic: ({0: 1}, {0: 5}),
            plan=lambda: "plan",
            counted=lambda: self.counts,
            forget_counted=lambda: None,
        )
        monkeypatch.setattr(module, "Execution", lambda spark, query_id: execution)
        monkeypatch.setattr(module, "keep_state", lambda *of: self.kept.append(of))
        spark: Any = None
        sink = Topic(self)
        watch: Any = SimpleNamespace(check=lambda: None)
        checkpoint: Any = self.checkpoint
        rejects = LeftOutRows(sink, sources)
        self.runner = BatchRunner(
            spark, sink, checkpoint, delivery, rejects, watch, "cluster", {},
            destination=sink.destination,
        )  # fmt: skip
        assert self.runner.query_id() == "", "Spark has not begun"

    def check(self) -> None:
        if self.lost is not None:
            raise PipelineError(self.lost)


@pytest.mark.parametrize(
    ("delivery", "once"),
    [(DeliveryGuarantee.EXACTLY_ONCE, True), (DeliveryGuarantee.AT_LEAST_ONCE, False)],
)
def test_a_batch_that_was_cut_off_is_written_again(
    monkeypatch: pytest.MonkeyPatch, delivery: DeliveryGuarantee, once: bool
) -> None:
    world = World(monkeypatch, delivery)
    for _ in range(2):
        world.runner(FRAME, 4)
    found = [(frame, one.number, one.metadata, one.once) for frame, one in world.written]
    assert found == [(FRAME, 4, METADATA, once)] * 2
    assert (world.checkpoint.begun, world.kept) == ({}, [])


def test_at_most_once_writes_no_batch_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The batch is noted before its rows are written: a failure in between loses them."""
    world = World(monkeypatch, AT_MOST_ONCE)
    world.failure = RuntimeError("cut off")
    with pytest.raises(RuntimeError, match="cut off"):
        world.runner(FRAME, 4)
    world.failure = None
    world.runner(FRAME, 4)
    assert [(frame, one.number) for frame, one in world.written] == [(FRAME, 4), (EMPTY, 4)]
    assert world.kept == [(FRAME, "plan")], "the next batch counts on its state"
    assert "Batch 4 was begun by a run that was cut off" in caplog.text
    assert "its rows up to {'in': {0: 5}} may be missing in topic out" in caplog.text
    world.runner(FRAME, 5)
    assert world.written[2][0] is FRAME
    assert world.checkpoint.begun == {"query-1": 5}


def test_a_batch_that_a_copy_of_the_checkpoint_wrote_otherwise_is_not_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, AT_MOST_ONCE)
    world.runner(FRAME, 4)
    world.held = Held("topic out", 4, digest({"in": {0: 9}}))
    with pytest.raises(PipelineError, match="was set back, for example by a backup"):
        world.runner(FRAME, 4)


def test_nothing_is_written_from_a_topic_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, AT_MOST_ONCE)
    world.lost = "Topic 'in' was deleted and created again"
    with pytest.raises(PipelineError, match="deleted and created again"):
        world.runner(FRAME, 0)
    assert (world.written, world.checkpoint.begun) == ([], {})


def test_rows_that_did_not_parse_are_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(monkeypatch, DeliveryGuarantee.AT_LEAST_ONCE, BYTES, ROWS)
    world.counts = {ROWS.metric: {REJECTED: 0}, BYTES.metric: {REJECTED: 9}}
    world.runner(FRAME, 0)
    assert caplog.text == "", "bytes always parse"
    world.counts = {ROWS.metric: {REJECTED: 3, BLOCKS: FIRST_BLOCK}}
    for number in (1, 2):
        world.runner(FRAME, number)
    (said,) = caplog.messages
    assert said.startswith("the topic in has rows that do not parse: 3 in this batch. They are not")
    assert [batch.number for _, batch in world.written] == [0, 1, 2]


def test_where_rows_lie_that_did_not_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, DeliveryGuarantee.AT_LEAST_ONCE, BYTES, ROWS)
    world.counts = {ROWS.metric: {REJECTED: 3, BLOCKS: FIRST_BLOCK}, BYTES.metric: {REJECTED: 9}}
    world.runner(FRAME, 0)
    world.counts = {ROWS.metric: {REJECTED: 0}}
    world.runner(FRAME, 1)
    some = RejectedOffsets((RejectedRange(1, 5),))
    assert world.runner.rejected_in(0) == {("in", 0): some}
    assert world.runner.rejected_in(1) == {}
    assert world.runner.rejected_in(2) is None, "another run wrote it"
    assert World(monkeypatch, AT_MOST_ONCE, BYTES).runner.rejected_in(2) == {}


def test_what_a_journey_learns_of_the_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, AT_MOST_ONCE)
    assert world.runner.destination == Destination(
        "topic", "out", called="a topic", place_is="topic"
    )
    assert world.runner.table == "topic out"
    assert world.runner.version_of(3) is None
