"""What a plan refuses, and where it continues: brokers, checkpoint and table are in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, LongType

from ottla.pipelines.checkpoint.checkpoint import Position
from ottla.pipelines.checkpoint.identity import (
    FILE,
    IDENTITY_DOCUMENT,
    Identity,
    Offsets,
    Replacing,
)
from ottla.pipelines.checkpoint.landmarks import LANDMARKS, Known
from ottla.pipelines.checkpoint.next_batch import Held, Planned
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import NO_ID, ClusterState, TopicState
from ottla.pipelines.kafka.settings import KafkaSettings, read_settings
from ottla.pipelines.run import plan as module
from ottla.pipelines.run.log_watch import replaced_records
from ottla.pipelines.run.plan import Plan, check_path, look_up_topics, plan
from ottla.pipelines.source.source import Source
from ottla.pipelines.target.expectations import Expectations
from ottla.pipelines.target.keyed_table import KeyedTable
from ottla.pipelines.target.port import Batch, Sink

KAFKA = read_settings("b:9092")
OTHER = read_settings("elsewhere:9092")
ONCE = "exactly-once"
IDENTITY = Identity("cluster", {"t": "id-t"}, "id-table", "file:/lake/t", ONCE)


class FakeCheckpoint:
    """A checkpoint: what a former query left in it."""

    def __init__(self) -> None:
        self.is_file = False
        self.files: Any = SimpleNamespace(
            location="file:/lake/cp", is_file=lambda: self.is_file, read=self.read
        )
        self.identity: Identity | None = None
        self.begun = False
        self.next: Offsets = {}
        self.end: Offsets = {}
        self.first: Offsets = {}
        self.last_noted = -1
        self.sources = 1
        self.landmarks: dict[str, Known] = {}

    def read(self, name: str) -> str | None:
        if name == LANDMARKS.name:
            return LANDMARKS.text(self.landmarks)
        assert name == FILE
        return None if self.identity is None else IDENTITY_DOCUMENT.text(self.identity)

    def check(self) -> None: ...

    def query_id(self) -> str:
        return "query-1" if self.begun else ""

    def planned(self) -> int | None:
        return 3 if self.begun else None

    def done(self) -> int | None:
        return 2 if self.begun else None

    def position(self) -> Position:
        return self.query_id(), self.planned(), self.done()

    def plans(self, path: str) -> Planned:
        planned = self.planned()
        if planned is None:
            return Planned(path, 0)
        return Planned(path, planned, self.next, self.end)

    def begins(self, *, is_delivered: bool = False) -> Offsets:
        return self.end if is_delivered else self.next

    def topics_by_number(self) -> list[list[str]]:
        return [["t"]] * self.sources

    def started(self) -> Offsets:
        return {} if self.begun else self.first

    def last_ms(self) -> int | None:
        return self.begun_ms()

    def begun_ms(self) -> int | None:
        return 1_000 if self.begun else None

    def promised(self, query_id: str) -> int | None:
        done = self.done()
        return done if done is not None and done > self.last_noted else None

    def count_sources(self) -> int:
        return self.sources

    def next_replaced(self) -> int:
        return 4


class Table(Sink):
    """A table that has the query's batches up to `last`."""

    name = short_name = shown = "t"
    kind = "delta"
    called = "Delta"
    location = "file:/lake/t"

    def __init__(self) -> None:
        self.id = "id-table"
        self.last: int | None = 2
        self.ends: Offsets | None = None
        self.asked_of: list[str] = []

    def check(self) -> list[str]:
        return ["a column is added"]

    def table_id(self) -> str:
        return self.id

    def held(self, query_id: str) -> Held:
        self.asked_of.append(query_id)
        return Held("the table t", self.last, self.ends, is_complete=True)

    def make(self) -> None: ...

    def write(self, frame: Any, batch: Batch) -> int:
        raise AssertionError("a plan writes nothing")


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checkpoint, self.table = FakeCheckpoint(), Table()
        self.sources = [Source("t", KAFKA, {"value": BinaryType()})]
        self.topics = {"t": TopicState("t", "id-t", {0: 0}, {0: 9})}
        self.clusters = {KAFKA: "cluster", OTHER: "cluster-2"}
        self.asked: list[tuple[KafkaSettings, list[str]]] = []
        self.forgotten: list[tuple[Any, ...]] = []
        monkeypatch.setattr(module, "sources_of", lambda frame: list(enumerate(self.sources)))
        monkeypatch.setattr(module, "look_up", self.look_up)
        monkeypatch.setattr(module, "forgotten_deletions", lambda *of: self.forgotten.append(of))
        monkeypatch.setattr(module, "Files", lambda spark, location: location)
        monkeypatch.setattr(module, "Checkpoint", lambda files: self.checkpoint)

    def look_up(self, kafka: KafkaSettings, names: Iterable[str]) -> ClusterState:
        wanted = list(names)
        self.asked.append((kafka, wanted))
        for name in wanted:
            if name not in self.topics:
                raise PipelineError(f"there is no topic {name}")
        return ClusterState(self.clusters[kafka], {name: self.topics[name] for name in wanted})

    def plan(self, **changes: Any) -> Plan:
        given = {
            "frame": SimpleNamespace(sparkSession=None),
            "checkpoint": "/lake/cp",
            "delivery": ONCE,
            "on_lost": "stop",
            "group": None,
            "dead_letters": None,
            "keyed_table": None,
            "key_columns": (),
            "time_zone": "UTC",
            "value_settings": {"spark.sql.ansi.enabled": "true"},
            "mode": "append",
            "expectations": Expectations(()),
        }
        specification: Any = SimpleNamespace(**(given | changes))

        def sink_of(specification: Any) -> Any:
            return self.table

        return plan(specification, sink_of)

    def refusal(self, **changes: Any) -> str:
        with pytest.raises(PipelineError) as refused:
            self.plan(**changes)
        assert "\n" not in str(refused.value)
        return str(refused.value)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Nothing was delivered yet."""
    return World(monkeypatch)


@pytest.fixture
def begun(world: World) -> World:
    """Batch 2 is done and batch 3 planned; offset 5 is the next, and 6 the end of batch 3."""
    world.checkpoint.begun = True
    world.checkpoint.identity = IDENTITY
    world.checkpoint.next, world.checkpoint.end = {"t": {0: 5}}, {"t": {0: 6}}
    return world


def test_a_new_query_starts_at_the_topics_beginning(world: World) -> None:
    made = world.plan()
    assert (made.starting, made.replacing) == ({"t": {0: 0}}, None)
    assert (made.cluster, made.topic_ids) == ("cluster", {"t": "id-t"})
    assert made.notices == ("a column is added",)
    assert made.position == ("", None, None)
    assert world.table.asked_of == []


def test_brokers_that_give_topics_no_ids_are_told(world: World) -> None:
    world.topics["t"] = replace(world.topics["t"], topic_id=NO_ID)
    _, said = world.plan().notices
    assert said.startswith("The brokers of topic 't' give topics no ids: if it is deleted and")


def test_a_query_continues_from_its_checkpoint(begun: World) -> None:
    made = begun.plan()
    assert (made.starting, made.replacing, made.due) == (None, None, ())
    assert made.position == ("query-1", 3, 2)
    assert begun.table.asked_of == ["query-1"]


def test_a_checkpoint_that_is_older_than_its_table_is_refused(begun: World) -> None:
    begun.table.last = 3
    assert begun.plan().starting is None, "batch 3 is written, and not noted as done"
    begun.table.last = 4
    said = begun.refusal()
    assert "The checkpoint /lake/cp was set back" in said
    assert "the table t has batch 4 of this query, and the checkpoint has batches up to 3" in said


def test_a_batch_ends_in_the_table_where_the_checkpoint_has_its_end(begun: World) -> None:
    begun.table.ends = {"t": {0: 5}}
    assert begun.plan().starting is None
    begun.table.ends = {"t": {0: 4}}
    said = begun.refusal()
    assert "t has batch 2 of this query up to offset 4 in partition 0 of topic 't'" in said
    assert "and the checkpoint has it up to offset 5 in partition 0" in said
    begun.table.last, begun.table.ends = 3, {"t": {0: 6}}
    assert begun.plan().starting is None
    begun.table.ends = {"t": {0: 5}}
    assert "has batch 3 of this query up to offset 5" in begun.refusal()


def test_what_a_table_has_counts_done_or_not(begun: World) -> None:
    """Records that it has were not lost before they were delivered."""
    begun.topics["t"] = TopicState("t", "id-t", {0: 6}, {0: 9})
    assert "1 records of topic 't' that were not delivered yet are gone" in begun.refusal()
    begun.table.last = 3
    assert begun.plan().starting is None


def test_a_checkpoint_without_its_first_batch_is_older_too(
    begun: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(begun.checkpoint, "planned", lambda: None)
    begun.table.last = 0
    assert "and the checkpoint has no batch" in begun.refusal()


def test_groups_and_dead_letters_need_a_topic(world: World) -> None:
    world.sources = []
    said = world.refusal(group="g")
    assert said.startswith("group='g' is kept on the brokers of the frame's topic")
    assert said.endswith("leave out group")
    assert "the frame reads no topic(): leave it out" in world.refusal(dead_letters="dead")


def test_dead_letters_go_to_another_topic_that_exists(world: World) -> None:
    assert "it would read its own rejected rows" in world.refusal(dead_letters="t")
    assert world.refusal(dead_letters="dead") == "there is no topic dead"
    world.topics["dead"] = TopicState("dead", "id-dead", {0: 0}, {0: 0})
    assert world.plan(dead_letters="dead").topic_ids == {"t": "id-t"}


@pytest.mark.parametrize(
    ("tombstones", "keyed", "is_refused"),
    [
        ("mark", KeyedTable(("id",), ("id",)), True),
        ("mark", KeyedTable(("id",), ("id",), has_tombstones=True), False),
        ("skip", KeyedTable(("id",), ("id",)), False),
        ("mark", None, False),
    ],
)
def test_marked_tombstones_need_their_column(
    world: World, tombstones: Any, keyed: KeyedTable | None, is_refused: bool
) -> None:
    world.sources = [Source("t", KAFKA, {"value": BinaryType()}, tombstones=tombstones)]
    if is_refused:
        assert "has no such column: select it too" in world.refusal(keyed_table=keyed)
    else:
        world.plan(keyed_table=keyed)


def test_deletions_of_an_ordered_table_are_warned_of(world: World) -> None:
    keyed = KeyedTable(("id",), ("id", "at"), order_by="at", has_tombstones=True)
    world.table.keyed = keyed
    added, warned = world.plan(keyed_table=keyed).notices
    assert added == "a column is added"
    assert warned.endswith("write deletes='mark', with a new table and checkpoint")


def test_new_partitions_are_refused_where_a_deleted_key_could_come_back(begun: World) -> None:
    begun.topics["t"] = TopicState("t", "id-t", {0: 0, 1: 0}, {0: 9, 1: 4})
    deletes = KeyedTable(("id",), ("id",), has_tombstones=True)
    begun.table.keyed = deletes
    assert "has got the partition 1 since the last batch" in begun.refusal(keyed_table=deletes)

    for keyed in (
        None,
        KeyedTable(("id",), ("id",)),  # a key in two partitions is found by its row
        KeyedTable(("id",), ("id", "at"), order_by="at", has_tombstones=True),
    ):
        begun.table.keyed = keyed
        begun.plan(keyed_table=keyed)


def test_deletions_that_a_topic_may_have_forgotten_are_asked_for(begun: World) -> None:
    begun.table.keyed = KeyedTable(("id",), ("id",))
    begun.plan(keyed_table=begun.table.keyed)
    assert begun.forgotten == [], "its tombstones delete nothing"
    begun.table.keyed = KeyedTable(("id",), ("id",), has_tombstones=True)
    begun.plan(keyed_table=begun.table.keyed)
    ((_, name, at, last_ms, _, target),) = begun.forgotten
    assert (name, at, last_ms, target) == ("t", {0: 5}, 1_000, "t")


def test_topics_of_several_clusters(world: World) -> None:
    world.topics["u"] = TopicState("u", "id-u", {0: 0}, {0: 0})
    sources = [Source(name, KAFKA, {}) for name in ("t", "u")] + [Source("u", OTHER, {})]
    cluster, topics = look_up_topics(tuple(enumerate(sources)))
    assert (cluster, list(topics)) == ("cluster,cluster-2", ["t", "u"])
    assert world.asked == [(KAFKA, ["t", "u"]), (OTHER, ["u"])], "one question for each cluster"


def test_one_name_in_two_clusters(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(kafka: KafkaSettings, names: Iterable[str]) -> ClusterState:
        state = TopicState("t", f"id of {world.clusters[kafka]}", {0: 0}, {0: 0})
        return ClusterState(world.clusters[kafka], {"t": state})

    monkeypatch.setattr(module, "look_up", look_up)
    world.sources.append(Source("t", OTHER, {}))
    assert "a topic 't' of two clusters" in world.refusal()


@pytest.mark.parametrize(
    ("path", "is_inside"),
    [
        ("file:/lake/t", True),
        ("file:/lake/t/cp", True),
        ("file:/lake/t/_checkpoint", False),
        ("file:/lake/t_cp", False),
        ("file:/lake", False),
    ],
)
@pytest.mark.parametrize("table", ["file:/lake/t", "file:/lake/t/"])
def test_a_checkpoint_that_vacuum_would_delete(
    world: World, path: str, is_inside: bool, table: str
) -> None:
    world.checkpoint.files.location = path
    specification: Any = SimpleNamespace(checkpoint="cp")
    sink: Any = SimpleNamespace(folders=(table,), name="t")
    checkpoint: Any = world.checkpoint
    if not is_inside:
        check_path(specification, checkpoint, sink)
        return
    with pytest.raises(PipelineError, match="cp lies inside the table t: what cleans up there"):
        check_path(specification, checkpoint, sink)


def test_a_checkpoint_that_is_a_file(world: World) -> None:
    world.checkpoint.is_file = True
    assert world.refusal() == "The checkpoint /lake/cp is a file: give the name of a folder"


@pytest.mark.parametrize(
    ("identity", "said"),
    [
        (Identity("other", {"t": "id-t"}, "id-table", "x", ONCE), "belongs to the cluster other"),
        (Identity("cluster", {"u": "id-u"}, "id-table", "x", ONCE), "belongs to topic 'u'"),
        (Identity("cluster", {"t": "id-t"}, "id-2", "x", ONCE), "belongs to the table x, not to"),
        (
            Identity("cluster", {"t": "id-t"}, "id-2", "file:/lake/t", ONCE),
            "The table t was deleted and created again",
        ),
        (
            Identity("cluster", {"t": "id-t"}, "id-table", "x", ONCE, keys=("id",)),
            "has written the table t with keys=['id'], and this query has no keys=",
        ),
    ],
)
def test_a_checkpoint_of_something_else(begun: World, identity: Identity, said: str) -> None:
    begun.checkpoint.identity = identity
    assert said in begun.refusal()


def test_a_checkpoint_of_another_time_zone(begun: World) -> None:
    begun.checkpoint.identity = replace(IDENTITY, time_zone="UTC")
    assert begun.plan().notices == ("a column is added",)
    said = begun.refusal(time_zone="Europe/Berlin")
    assert "has read times without a zone as UTC, and this session reads them as Europe" in said

    begun.checkpoint.identity = replace(IDENTITY, time_zone=None)
    _, notice = begun.plan().notices
    assert notice.endswith("From now on it is UTC")


def test_a_checkpoint_whose_rows_were_made_by_other_settings(begun: World) -> None:
    settings = {"spark.sql.ansi.enabled": "true"}
    begun.checkpoint.identity = replace(IDENTITY, time_zone="UTC", settings=settings)
    assert begun.plan().identity.settings == settings
    said = begun.refusal(value_settings={"spark.sql.ansi.enabled": "false"})
    assert "with spark.sql.ansi.enabled=true, and this session has false" in said
    begun.checkpoint.identity = replace(IDENTITY, time_zone="UTC")
    assert begun.plan().identity.settings == settings


def test_a_checkpoint_from_before_identities_needs_its_batches_in_the_table(begun: World) -> None:
    begun.checkpoint.identity = None
    assert begun.plan().starting is None
    begun.table.last = 1
    assert begun.plan().starting is None, "what wrote it may have left out an empty batch"
    begun.table.last = None
    assert "has delivered batches that the table t does not hold" in begun.refusal()


def test_a_table_that_was_set_back_is_refused(begun: World) -> None:
    begun.table.last = 1
    said = begun.refusal()
    assert said.startswith("The table t has the batches up to 1 of this query, and the checkpoint")
    assert "/lake/cp those up to 2: the table was set back" in said
    begun.table.last = None
    assert "has delivered batches that the table t does not hold" in begun.refusal()
    begun.checkpoint.last_noted = 2
    assert begun.plan().starting is None, "at-most-once began batch 2, which may be missing"


def test_lost_records_stop_the_query_or_begin_a_new_one(begun: World) -> None:
    begun.topics["t"] = TopicState("t", "id-t", {0: 7}, {0: 9})
    said = begun.refusal()
    assert said.startswith("2 records of topic 't' that were not delivered yet are gone")
    assert "Write on_lost='skip' to continue without them" in said
    made = begun.plan(on_lost="skip")
    assert (made.starting, made.replacing) == ({"t": {0: 7}}, Replacing(4, {"t": {0: 7}}))
    assert any("on_lost='skip' continues without them" in notice for notice in made.notices)
    assert any("moved to replaced-4" in notice for notice in made.notices)


def test_topics_in_another_order_than_the_checkpoints(begun: World) -> None:
    begun.checkpoint.topics_by_number = lambda: [["u"], ["t"]]  # type: ignore[method-assign]
    assert "has topic 'u' as source 1 of its query, and the frame reads" in begun.refusal()


def test_a_topic_that_ends_within_a_batch_that_was_cut_off(begun: World) -> None:
    begun.checkpoint.end = {"t": {0: 11}}
    said = begun.refusal()
    assert said.startswith("Topic 't' ends 2 records before the end of the batch that was cut off")
    assert begun.plan(on_lost="skip").starting == {"t": {0: 5}}
    begun.table.last = 3
    assert "ends 2 records before the offset of this checkpoint" in begun.refusal()


def test_offsets_that_have_other_records_now_stop_the_query(
    begun: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers that lost records, or a backup of them: Spark would leave the new records out."""
    begun.checkpoint.landmarks = {"t": Known("id-t", {0: (4, 1_000)})}
    found = {"t": {0: (4, 1_000)}}
    asked = SimpleNamespace(first_since=lambda _: found)
    monkeypatch.setattr(replaced_records, "__defaults__", (lambda _: asked,))
    assert begun.plan().starting is None
    found["t"][0] = (3, 2_000)
    assert begun.refusal().startswith(
        "Topic 't' has other records than those that were delivered, from offset 3 of partition 0"
    )
    made = begun.plan(on_lost="skip")
    assert made.starting == {"t": {0: 3}}
    assert any("from offset 3 of partition 0" in one for one in made.notices)


def test_a_query_without_a_batch_begins_where_its_first_start_did(world: World) -> None:
    """What was produced since then is not left out."""
    world.sources = [replace(world.sources[0], starting="latest")]
    assert world.plan().starting == {"t": {0: 9}}
    world.checkpoint.first, world.checkpoint.identity = {"t": {0: 4}}, IDENTITY
    made = world.plan()
    assert made.starting == {"t": {0: 4}}
    assert any("where it ended when this query was first started" in one for one in made.notices)

    world.topics["t"] = TopicState("t", "id-t", {0: 6}, {0: 9})
    assert "2 records of topic 't' that were not delivered yet are gone" in world.refusal()
    assert world.plan(on_lost="skip").starting == {"t": {0: 6}}
    world.topics["t"] = TopicState("t", "another id", {0: 0}, {0: 2})
    assert world.plan().starting == {"t": {0: 2}}
    world.sources = [replace(world.sources[0], starting="earliest")]
    assert world.plan().starting == {"t": {0: 0}}


def test_a_topic_that_is_read_twice_is_not_continued_at_one_offset(begun: World) -> None:
    begun.sources *= 2
    begun.checkpoint.sources = 2
    assert begun.plan().starting is None
    begun.topics["t"] = TopicState("t", "id-t", {0: 7}, {0: 9})
    assert "on_lost='skip' cannot be used here" in begun.refusal(on_lost="skip")
    begun.checkpoint.begun, begun.checkpoint.identity = False, None
    begun.sources = [replace(begun.sources[0], starting="table")] * 2
    assert "starting='table' cannot be used here" in begun.refusal()
    schema = {"value": LongType()}
    begun.sources = [
        replace(one, schemas=schema, max_rows=number + 1)
        for number, one in enumerate(begun.sources)
    ]
    assert "whose rejected rows cannot be told apart" in begun.refusal()


def test_streams_of_other_makers_cannot_be_skipped(begun: World) -> None:
    begun.topics["t"] = TopicState("t", "id-t", {0: 7}, {0: 9})
    begun.checkpoint.sources = 2
    said = begun.refusal(on_lost="skip")
    assert "on_lost='skip' cannot be used here" in said
    assert "they would start again from their beginning" in said


def test_a_move_that_was_cut_off_is_finished(begun: World) -> None:
    """Its note says where the new query starts; the state may lie in either path."""
    moving = Replacing(2, {"t": {0: 6}})
    begun.checkpoint.identity = replace(IDENTITY, replacing=moving)
    made = begun.plan()
    assert (made.starting, made.replacing) == ({"t": {0: 6}}, moving)
    assert begun.table.asked_of == [], "the former query's offsets do not count"


def test_records_lost_since_a_move_that_was_cut_off(begun: World) -> None:
    begun.checkpoint.identity = replace(IDENTITY, replacing=Replacing(2, {"t": {0: 6}}))
    begun.topics["t"] = TopicState("t", "id-t", {0: 8}, {0: 9})
    made = begun.plan(on_lost="skip")
    assert (made.starting, made.replacing) == ({"t": {0: 8}}, Replacing(2, {"t": {0: 8}}))
