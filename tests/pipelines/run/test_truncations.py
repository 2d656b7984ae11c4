"""Records that truncate the table: what stays of the rows, on a real Delta table and over kills."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.target.changes import KINDS, SCHEMA, Row, changes_of, expected_of, plain, split

from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.run.truncations import check_alone, check_one_topic, truncated
from ottla.pipelines.running import QUERIES
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.delta.target import find_target
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.target.commit_metadata import CommitMetadata
from ottla.pipelines.target.keyed_table import KeyedTable, read_keyed_table
from ottla.pipelines.target.port import Batch
from ottla.pipelines.target.truncation import read_truncations

pytestmark = pytest.mark.spark


class Table:
    """A Delta table with keys, its batches and its checkpoint."""

    def __init__(self, spark: Any, folder: Path, **how: Any) -> None:
        self.spark = spark
        self.schema = spark.createDataFrame([], SCHEMA).schema
        self.keyed = read_keyed_table(self.schema, ["id"], has_truncations=True, **how)
        target = find_target(spark, folder / "table")
        self.sink = DeltaSink(spark, target, self.schema, keyed=self.keyed, compact_after=0)
        self.sink.check()
        self.sink.make()
        self.files = Files(spark, str(folder / "checkpoint"))
        self.batches = 0

    def write(self, records: list[Row], number: int | None = None) -> int | None:
        frame = self.spark.createDataFrame(records, SCHEMA)
        chosen = self.batches if number is None else number
        batch = Batch("query", chosen, f'{{"batch": {chosen}}}')
        with truncated(frame, self.keyed, batch, self.files, self.sink) as (rows, of_it):
            version = self.sink.write(rows, of_it)
        self.batches += number is None
        return version

    def rows(self) -> list[Row]:
        found = self.spark.read.format("delta").load(self.sink.target.location)
        if self.keyed.deletes == "mark":
            found = found.where("NOT is_deleted")
        columns = ("id", "city", "place", "at", "partition", "offset")
        return sorted((plain(row) for row in found.select(*columns).collect()), key=lambda r: r[0])


MORE_SEEDS = [pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8)]
QUICK_KINDS = ("offsets, nulls", "marked")
"""Each takes half a minute; the other kinds differ from these in one thing."""


@pytest.mark.parametrize("seed", [1, *MORE_SEEDS])
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind in QUICK_KINDS else pytest.mark.full) for kind in KINDS],
)
def test_what_is_older_than_a_truncation_goes(
    spark: Any, tmp_path: Path, kind: str, seed: int
) -> None:
    records = changes_of(kind, seed)
    table = Table(spark, tmp_path, **KINDS[kind])
    batches = split(records, seed)
    for number, batch in enumerate(batches):
        table.write(batch)
        so_far = [one for some in batches[: number + 1] for one in some]
        assert table.rows() == expected_of(kind, so_far), number
    # A batch that comes twice is there once.
    assert table.write(batches[-1], len(batches) - 1) is None
    assert table.rows() == expected_of(kind, records)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("TIMESTAMP", datetime.datetime(2026, 1, 31, 23, 59, 59, 123456)),
        ("TIMESTAMP_NTZ", datetime.datetime(2026, 1, 31, 23, 59, 59, 123456)),
        ("STRING", 'it\'s a \\ "place" ü'),
        ("DECIMAL(38, 9)", None),
        ("BIGINT", 2**63 - 1),
        ("DOUBLE", 0.1),
        ("DATE", datetime.date(2026, 1, 31)),
    ],
)
def test_the_place_of_a_truncation_is_kept_as_it_is(
    spark: Any, tmp_path: Path, kind: str, value: Any
) -> None:
    schema = f"id INT, `at 'x` {kind}, partition INT, offset BIGINT, truncation BOOLEAN"
    rows = spark.createDataFrame([(None, value, 0, 7, True), (1, value, 0, 8, False)], schema)
    if kind.startswith("DECIMAL"):
        number = "12345678901234567890123456789.123456789"
        rows = rows.withColumn(
            "at 'x", rows["offset"] * 0 + spark.sql(f"SELECT {number}BD").first()[0]
        )
    keyed = read_keyed_table(rows.schema, ["id"], order_by="at 'x", has_truncations=True)
    files = Files(spark, str(tmp_path))
    found, _ = read_truncations(rows, keyed, None)
    with truncated(rows, keyed, Batch("query", 0, ""), files) as (left, of_it):
        assert of_it.truncation == found
        assert [row["id"] for row in left.collect()] == [1]
    # What is noted leaves out its equal, too.
    with truncated(rows, keyed, Batch("query", 1, ""), files) as (left, of_it):
        assert of_it.truncation == found


TOPICS = "topic STRING, id INT, at INT, partition INT, offset BIGINT, tombstone BOOLEAN"
ORDERED = {"order_by": "at"}


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({}, id="offsets"),
        pytest.param(ORDERED, id="ordered", marks=pytest.mark.full),
        pytest.param(ORDERED | {"deletes": "mark", "ignore_nulls": True}, id="marked, nulls"),
    ],
)
def test_a_truncation_takes_the_rows_of_its_own_topic(
    spark: Any, tmp_path: Path, how: dict[str, Any]
) -> None:
    columns = f"{TOPICS}, truncation BOOLEAN"
    schema = spark.createDataFrame([], columns).schema
    keyed = read_keyed_table(schema, ["topic", "id"], has_truncations=True, **how)
    target = find_target(spark, tmp_path / "table")
    sink = DeltaSink(spark, target, schema, keyed=keyed, compact_after=0)
    sink.check()
    sink.make()
    files = Files(spark, str(tmp_path / "checkpoint"))
    offsets = {"a": 0, "b'": 0}
    numbers = iter(range(10))

    def write(*records: tuple[str, int | None, int]) -> int:
        rows = []
        for topic_, id_, at in records:
            rows.append((topic_, id_, at, 0, offsets[topic_], False, id_ is None))
            offsets[topic_] += 1
        batch = Batch("query", next(numbers), "")
        frame = spark.createDataFrame(rows, columns)
        with truncated(frame, keyed, batch, files, sink) as (left, of_it):
            sink.write(left, of_it)
        return int(of_it.truncated)

    def there() -> list[tuple[str, int]]:
        found = spark.read.format("delta").load(str(tmp_path / "table"))
        if keyed.deletes == "mark":
            found = found.where("NOT is_deleted")
        return sorted((row["topic"], row["id"]) for row in found.collect())

    write(("a", 1, 1), ("a", 2, 2), ("b'", 1, 1), ("b'", 2, 2))
    write(("a", None, 90), ("a", 3, 91), ("b'", 3, 3))
    assert there() == [("a", 3), ("b'", 1), ("b'", 2), ("b'", 3)]
    # Records of the other topic come with a lesser order, and are no older.
    assert write(("b'", 4, 4)) == 0
    assert write(("b'", None, 5), ("b'", 5, 6), ("a", 4, 92)) == 0
    assert there() == [("a", 3), ("a", 4), ("b'", 5)]
    if keyed.order_by is not None:
        assert write(("a", 5, 89), ("b'", 6, 7), ("b'", 7, 4)) == 2
        assert there() == [("a", 3), ("a", 4), ("b'", 5), ("b'", 6)]


WHOLE_TABLE = KeyedTable(("id",), ("id", "at"), order_by="at", has_truncations=True)
OF_TOPIC = KeyedTable(
    ("topic", "id"),
    ("topic", "id"),
    position=("topic", "partition", "offset"),
    has_truncations=True,
)


def test_a_truncation_would_take_the_rows_of_other_topics() -> None:
    with pytest.raises(PipelineError, match=r"reads 'a', 'b', and a truncation of one of them"):
        check_one_topic(WHOLE_TABLE, {"b", "a"})
    check_one_topic(WHOLE_TABLE, {"a"})
    check_one_topic(OF_TOPIC, {"a", "b"})
    check_one_topic(None, {"a", "b"})

    def commits(*topics: str) -> list[str]:
        offsets = {name: {0: 7} for name in topics}
        return ["", CommitMetadata("other", "id", 0, "cluster", {}, offsets).text()]

    with pytest.raises(PipelineError, match=r"of 'a' would take the rows of topic 'b', too.*other"):
        check_alone(WHOLE_TABLE, {"a"}, commits("a", "b"), "t")
    check_alone(WHOLE_TABLE, {"a"}, commits("a"), "t")
    check_alone(OF_TOPIC, {"a"}, commits("b"), "t")


@pytest.mark.parametrize("is_there", [False, True], ids=["before its commit", "after it"])
def test_a_truncation_that_never_happened_leaves_nothing_out(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    # A condition was wrong, the batch failed, and is read again by a right one.
    table = Table(spark, tmp_path, order_by="at")

    def record(id_: int, at: int, *, truncates: bool = False) -> Row:
        return (id_, "x", None, at, 0, at, False, truncates)

    table.write([record(1, 1), record(2, 2)])
    table.write([record(9, 3, truncates=True), record(3, 4)])
    shipped = table.sink.write

    def killed(rows: Any, batch: Any) -> Any:
        if is_there:
            shipped(rows, batch)
        raise PipelineError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(table.sink, "write", killed)
        with pytest.raises(PipelineError, match="killed"):
            table.write([record(4, 5), record(5, 900, truncates=True)])
    table.write([record(4, 5), record(5, 900)])
    table.write([record(6, 2), record(7, 7)])
    # The truncation before it has happened.
    assert [row[0] for row in table.rows()] == ([] if is_there else [3, 4, 5, 7])


def test_a_topic_that_was_created_again_is_not_older_than_a_truncation(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    schema = "id INT, at INT, partition INT, offset BIGINT, truncation BOOLEAN"
    first = spark.createDataFrame([(None, 900, 0, 7, True)], schema)
    then = spark.createDataFrame([(1, 5, 0, 0, False)], schema)
    keyed = read_keyed_table(first.schema, ["id"], order_by="at", has_truncations=True)
    files = Files(spark, str(tmp_path))
    found = []
    for number, rows, topic_id in (
        (0, first, "id-1"),
        (1, then, "id-1"),
        (2, then, "id-2"),
        (3, then, "id-2"),
    ):
        batch = Batch("query", number, "")
        with truncated(rows, keyed, batch, files, topic_ids={"t": topic_id}) as (left, of_it):
            found.append((left.count(), of_it.truncated))
    assert found == [(0, 0), (0, 1), (1, 0), (1, 0)]
    assert caplog.text.count("The topics are others") == 1


ROW = "id INT NOT NULL, name STRING"
LSN = "CAST(get_json_object(source, '$.lsn') AS BIGINT) AS lsn"


def event(op: str, lsn: int, id_: int | None = None, name: str = "Anne") -> bytes:
    row = None if id_ is None else {"id": id_, "name": name}
    before, after = (row, None) if op == "d" else (None, row)
    found = {"op": op, "before": before, "after": after, "source": {"lsn": lsn}, "ts_ms": lsn}
    return json.dumps(found).encode()


class Job:
    """A pipeline of a database's table into a table with keys."""

    target: Path | None = None

    def __init__(self, spark: Any, bootstrap: str, name: str, folder: Path) -> None:
        self.spark, self.bootstrap, self.name, self.folder = spark, bootstrap, name, folder
        self.truncated = 0

    def run(self, *columns: str, truncate: Any = "apply", **how: Any) -> None:
        rows = topic(
            self.spark, self.name, bootstrap_servers=self.bootstrap, schema=ROW,
            source_format="debezium", truncate=truncate,
        )  # fmt: skip
        chosen = columns or ("tombstone", "truncation")
        query: Any = to_delta(
            rows.selectExpr("value.*", "partition", "offset", *chosen),
            self.target or self.folder / "people",
            checkpoint=self.folder / "checkpoint",
            trigger={"availableNow": True},
            **({"keys": ["id"]} | how),
        )
        query.awaitTermination()
        self.truncated += QUERIES[str(query.id)].truncated

    def rows(self, where: str = "true") -> list[tuple[Any, ...]]:
        frame = self.spark.read.format("delta").load(str(self.folder / "people")).where(where)
        return sorted(map(tuple, frame.select("id", "name").collect()))


@pytest.fixture
def new_job(
    spark: Any, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> Callable[[int], Job]:
    """A job that reads a new topic of so many partitions."""
    return lambda partitions: Job(spark, bootstrap, new_topic(partitions), tmp_path)


def _killed(patch: pytest.MonkeyPatch, *, is_after: bool) -> None:
    shipped = DeltaSink.write

    def killed(sink: Any, rows: Any, batch: Any) -> Any:
        if is_after:
            shipped(sink, rows, batch)
        raise PipelineError("killed")

    patch.setattr(DeltaSink, "write", killed)


def test_a_table_follows_a_truncation_although_each_batch_is_killed(
    new_job: Callable[[int], Job],
    produce: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them twice: before its commit, and after it when it is tried again."""
    job = new_job(1)
    batches: list[tuple[list[tuple[str, int | None]], list[int]]] = [
        ([("r", 1), ("r", 2), ("r", 3)], [1, 2, 3]),
        ([("u", 1), ("t", None), ("c", 4), ("c", 2)], [2, 4]),
        ([("t", None)], []),
        ([("c", 5), ("t", None), ("c", 6), ("d", 6), ("c", 7)], [7]),
    ]
    for events, left in batches:
        produce(job.name, [(b"k", event(op, 1, id_)) for op, id_ in events])
        for is_after in (False, True):
            with monkeypatch.context() as patch:
                _killed(patch, is_after=is_after)
                with pytest.raises(PipelineError, match="killed"):
                    job.run()
        job.run()
        assert [id_ for id_, _ in job.rows()] == left


def test_rejected_rows_are_kept_where_a_batch_meets_another_commit(
    new_job: Callable[[int], Job], produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job(1)
    shipped = DeltaSink.write

    def met_another(sink: Any, rows: Any, batch: Any) -> Any:
        rows.count()  # for the commit that was refused
        batch.forget_counted()
        return shipped(sink, rows, batch)

    monkeypatch.setattr(DeltaSink, "write", met_another)
    values = [event("r", 1, 1), event("t", 2), b"{", event("c", 3, 2)]
    produce(job.name, [(b"k", value) for value in values])
    job.run(on_rejects="continue")
    assert job.rows() == [(2, "Anne")]
    rejected = job.spark.read.format("delta").load(str(job.folder / "people_rejected"))
    assert [row["offset"] for row in rejected.collect()] == [2]


@pytest.mark.parametrize(
    "is_after",
    [
        pytest.param(False, id="before its commit"),
        pytest.param(True, id="after it", marks=pytest.mark.full),
    ],
)
def test_a_record_of_another_partition_that_is_older_does_not_come_back(
    new_job: Callable[[int], Job],
    produce: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_after: bool,
) -> None:
    job = new_job(2)
    how = {"order_by": "lsn", "deletes": "mark"}
    columns = (LSN, "tombstone", "truncation")
    produce(job.name, [(b"k", event("r", 10, 1)), (b"k", event("c", 60, 2, "Eve"))], partition=0)
    with pytest.raises(PipelineError, match="A truncation is a record of one partition"):
        job.run()
    job.run(*columns, **how)
    # The truncation is read, and only then what other partitions had before it.
    produce(job.name, [(None, event("t", 50))], partition=1)
    with monkeypatch.context() as patch:
        _killed(patch, is_after=is_after)
        with pytest.raises(PipelineError, match="killed"):
            job.run(*columns, **how)
    produce(job.name, [(b"k", event("c", 30, 3)), (b"k", event("c", 70, 4))], partition=0)
    job.run(*columns, **how)
    job.run(*columns, **how)
    produce(job.name, [(b"k", event("u", 40, 1)), (b"k", event("u", 80, 2))], partition=0)
    job.run(*columns, **how)
    assert "batch 2 has 1 records that are older than the last truncation of" in caplog.text
    assert job.truncated == 2
    assert job.rows("NOT is_deleted") == [(2, "Anne"), (4, "Anne")]
    assert job.rows("is_deleted") == [(1, "Anne")]


def test_a_condition_says_which_records_truncate_the_table(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    name = new_topic(1)

    def run() -> None:
        rows = topic(spark, name, bootstrap_servers=bootstrap, schema="op STRING, id INT")
        to_delta(
            rows.select("value.*", "partition", "offset"), tmp_path / "t",
            checkpoint=tmp_path / "c", trigger={"availableNow": True}, keys="id",
            apply_as_truncates="op = 't'", expect={"small": "id < 10"},
        ).awaitTermination()  # fmt: skip

    def send(*values: dict[str, Any]) -> None:
        produce(name, [(b"k", json.dumps(value).encode()) for value in values])

    send({"op": "c", "id": 1}, {"op": "c", "id": 11})
    run()
    send({"op": "t"}, {"op": "c", "id": 2}, {"op": "c"})
    run()
    found = spark.read.format("delta").load(str(tmp_path / "t"))
    assert found.columns == ["op", "id", "partition", "offset"]
    assert [row["id"] for row in found.collect()] == [2]
    rejected = spark.read.format("delta").load(str(tmp_path / "t_rejected")).orderBy("offset")
    assert [(row["offset"], row["reason"]) for row in rejected.collect()] == [
        (1, "does not fulfil small (id < 10)"),
        (4, "the key column id is null"),
    ]


@pytest.mark.parametrize(
    ("how", "columns", "said"),
    [
        ({}, ("tombstone",), "that gets it applies them: select it too"),
        ({"keys": ()}, ("truncation",), "name the key of the table in keys"),
        (
            {"history": True, "order_by": "offset"},
            ("tombstone", "truncation"),
            "A history keeps what is gone",
        ),
        (
            {"truncate": "ignore", "apply_as_truncates": "op = 't'"},
            ("tombstone", "op"),
            r"truncate='ignore'\) gives no event that truncates the table",
        ),
        (
            {"apply_as_truncates": "id"},
            ("tombstone", "truncation"),
            "apply_as_truncates: 'id' is int, and no condition",
        ),
    ],
)
def test_truncations_that_nothing_applies_are_refused(
    new_job: Callable[[int], Job], how: dict[str, Any], columns: tuple[str, ...], said: str
) -> None:
    job = new_job(1)
    with pytest.raises(PipelineError, match=said):
        job.run(*columns, **how)


def test_a_query_of_several_topics_and_a_table_of_another_one_are_refused(
    new_job: Callable[[int], Job],
    produce: Callable[..., None],
) -> None:
    job, other = new_job(1), new_job(1)
    for one in (job, other):
        produce(one.name, [(b"k", event("c", 1, 1))])
    how = {"order_by": "lsn"}

    def rows(name: str) -> Any:
        found = topic(
            job.spark, name, bootstrap_servers=job.bootstrap, schema=ROW,
            source_format="debezium", truncate="apply",
        )  # fmt: skip
        columns = ("value.*", f"'{name}' AS topic", "partition", "offset", LSN)
        return found.selectExpr(*columns, "tombstone", "truncation")

    def united(**how: Any) -> None:
        to_delta(
            rows(job.name).union(rows(other.name)), job.folder / "united",
            checkpoint=job.folder / "of-united", trigger={"availableNow": True}, **how,
        ).awaitTermination()  # fmt: skip

    with pytest.raises(PipelineError, match="a truncation of one of them would take the rows of"):
        united(keys=["id"], **how)
    united(keys=["topic", "id"], **how)

    job.run(LSN, "tombstone", "truncation", **how)
    other.folder = job.folder / "other"
    other.target = job.folder / "people"
    with pytest.raises(PipelineError, match=f"would take the rows of topic '{job.name}', too"):
        other.run(LSN, "tombstone", "truncation", **how)


def test_at_most_once_applies_the_truncation_of_a_batch_that_was_cut_off(
    new_job: Callable[[int], Job], produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job(1)
    produce(job.name, [(b"k", event("r", 1, 1)), (b"k", event("r", 2, 2))])
    job.run(delivery="at-most-once")
    produce(job.name, [(b"k", event("t", 3)), (b"k", event("c", 4, 3))])
    with monkeypatch.context() as patch:
        _killed(patch, is_after=False)
        with pytest.raises(PipelineError, match="killed"):
            job.run(delivery="at-most-once")
    produce(job.name, [(b"k", event("c", 5, 4))])
    job.run(delivery="at-most-once")
    # Its rows are lost, and known; those that were truncated do not stay.
    assert job.rows() == [(4, "Anne")]
