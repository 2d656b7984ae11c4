"""Tables with keys on a real Delta table: the same, however the records are cut into batches."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.delta import merge
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.delta.target import find_target
from ottla.pipelines.spark.session_settings import settings_of
from ottla.pipelines.target.keyed_table import read_keyed_table
from ottla.pipelines.target.port import Batch
from ottla.pipelines.target.record_position import RecordPosition

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT, word STRING, at INT, partition INT, offset BIGINT, tombstone BOOLEAN"
ORDER = ("at", "partition", "offset")


@dataclass(frozen=True)
class Record:
    """A record of a topic; `word` is None in a tombstone."""

    id: int
    word: str | None
    at: int
    partition: int
    offset: int

    @property
    def order(self) -> tuple[int, int, int]:
        return (self.at, self.partition, self.offset)

    @property
    def row(self) -> tuple[Any, ...]:
        return (self.id, self.word, *self.order, self.word is None)


def some_records(seed: int, count: int) -> list[Record]:
    """Records of a few keys in two partitions; `at` is not in the order of the offsets."""
    chosen = random.Random(seed)
    offsets = [itertools.count(), itertools.count()]
    records = []
    for number in range(count):
        partition = chosen.randrange(2)
        word = None if chosen.random() < 0.3 else f"w{number}"
        at = chosen.randrange(count // 2)
        records.append(Record(chosen.randrange(4), word, at, partition, next(offsets[partition])))
    return records


def last_of_each(records: list[Record]) -> list[tuple[Any, ...]]:
    """The table that an upsert must give: computed from all records at once."""
    last = {one.id: one for one in sorted(records, key=lambda one: one.order)}
    return sorted((*one.row,) for one in last.values())


def all_versions(records: list[Record]) -> list[tuple[Any, ...]]:
    """The table that a history must give: computed from all records at once."""
    found = []
    for _, same in itertools.groupby(
        sorted(records, key=lambda one: (one.id, one.order)), key=lambda one: one.id
    ):
        versions = list(same)
        for one, following in itertools.zip_longest(versions, versions[1:]):
            until = one.at if one.word is None else following.at if following else None
            current = following is None and one.word is not None
            found.append((*one.row[:-1], one.at, until, current))
    return sorted(found, key=lambda row: (row[0], row[2:5]))


class Table:
    """A Delta table with keys, and its batches."""

    def __init__(
        self, spark: Any, folder: Path, deletion_vectors: bool | None = None, **how: Any
    ) -> None:
        self.spark = spark
        self.schema = spark.createDataFrame([], SCHEMA).schema
        keyed = read_keyed_table(self.schema, ["id"], **how)
        target = find_target(spark, folder)
        self.sink = DeltaSink(
            spark, target, self.schema, keyed=keyed, deletion_vectors=deletion_vectors
        )
        assert self.sink.check() == []
        self.sink.make()
        self.batches = 0

    def write(self, records: list[Record], number: int | None = None) -> int | None:
        frame = self.spark.createDataFrame([one.row for one in records], SCHEMA)
        chosen = self.batches if number is None else number
        version = self.sink.write(frame, Batch("query", chosen, f'{{"batch": {chosen}}}'))
        self.batches += number is None
        return version

    def rows(self) -> list[tuple[Any, ...]]:
        found = self.spark.read.format("delta").load(self.sink.target.location).collect()
        return sorted(map(tuple, found), key=lambda row: (row[0], row[2:5]))


def test_a_table_that_was_changed_while_the_query_runs(spark: Any, tmp_path: Path) -> None:
    """What it had is gone, or it would change values: the query says so and goes no further."""
    table = Table(spark, tmp_path / "t", order_by="at")
    name = f"delta.`{tmp_path}/t`"
    known = Record(1, "w", 70_000, 0, 1)
    table.write([known])
    # A column of the same name takes no value that its type does not hold: a MERGE would cast it.
    narrower = spark.table(name).selectExpr("* EXCEPT (at)", "SMALLINT(5) AS at")
    writer = narrower.write.format("delta").mode("overwrite").option("overwriteSchema", True)
    writer.save(str(tmp_path / "t"))
    with pytest.raises(AnalysisException, match=r'Cannot up cast s\.at from "INT"'):
        table.write([Record(1, "x", 5, 0, 2)])
    assert [row["word"] for row in spark.table(name).collect()] == ["w"]

    # Made again with as many versions and more, it looks like the former table.
    columns = "id BIGINT, word STRING, at INT, partition INT, offset BIGINT"
    spark.sql(f"CREATE OR REPLACE TABLE {name} USING delta AS SELECT {_nulls(columns)} LIMIT 0")
    with pytest.raises(PipelineError, match=r"batch 1 was written to the new one, which lacks the"):
        table.write([Record(2, "x", 5, 0, 2)], 1)


def test_a_whole_number_goes_into_a_decimal_with_its_digits(spark: Any, tmp_path: Path) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{tmp_path}/t` (id DECIMAL(19,0), word STRING, at INT, "
        "partition INT, offset DECIMAL(20,0)) USING delta"
    )
    table = Table(spark, tmp_path / "t", order_by="at")
    for number, word in enumerate(("a", "b")):
        table.write([Record(2**63 - 1, word, number, 0, number)])
    assert table.rows() == [(2**63 - 1, "b", 1, 0, 1)]


def _nulls(columns: str) -> str:
    pairs = (column.split() for column in columns.split(", "))
    return ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in pairs)


def cut(records: list[Record], seed: int) -> list[list[Record]]:
    """Three batches of the records in another order, of which some come twice."""
    chosen = random.Random(seed)
    mixed = [*records, *chosen.sample(records, 3)]
    chosen.shuffle(mixed)
    return [mixed[0::3], mixed[1::3], mixed[2::3]]


MORE_SEEDS = [pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8)]


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, *MORE_SEEDS])
def test_an_upsert_with_an_order_depends_on_the_records_alone(
    spark: Any, tmp_path: Path, seed: int
) -> None:
    table = Table(spark, tmp_path / "table", order_by="at", deletes="mark")
    records = some_records(seed, 24)
    for batch in cut(records, seed):
        table.write(batch)
    assert table.rows() == last_of_each(records)


@pytest.mark.parametrize("seed", [1, *MORE_SEEDS])
def test_a_history_depends_on_the_records_alone(spark: Any, tmp_path: Path, seed: int) -> None:
    table = Table(spark, tmp_path / "table", order_by="at", history=True)
    records = some_records(seed, 24)
    versions = [table.write(batch) for batch in cut(records, seed)]
    assert table.rows() == all_versions(records)
    assert versions == [1, 2, 3]  # one commit each


def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that a history is merged with from now on, by name."""
    used: list[str] = []

    def recorded(name: str, make: Callable[..., str]) -> Callable[..., str]:
        def statement(*given: Any) -> str:
            used.append(name)
            return make(*given)

        return statement

    for name in ("in_order_statement", "history_statement"):
        monkeypatch.setattr(
            merge, name, recorded(name.removesuffix("_statement"), getattr(merge, name))
        )
    return used


def test_a_history_in_order_is_merged_by_the_shorter_statement(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = statements(monkeypatch)
    table = Table(spark, tmp_path / "table", order_by="at", history=True)
    first = [Record(1, "a", 1, 0, 0), Record(2, "b", 1, 1, 0), Record(3, "c", 2, 0, 1)]
    # A version that ends, a deletion, a deletion of what never was, and a record that comes twice.
    second = [
        Record(1, "d", 2, 0, 2),
        Record(1, "e", 3, 0, 3),
        Record(1, "e", 3, 0, 3),
        Record(2, None, 3, 1, 1),
        Record(4, None, 3, 1, 2),
    ]
    # After deletions, and at the same time as the version before.
    third = [Record(2, "f", 4, 1, 3), Record(4, "g", 3, 1, 4), Record(1, "h", 3, 0, 4)]
    assert [table.write(batch) for batch in (first, second, third)] == [1, 2, 3]
    assert table.rows() == all_versions(list({*first, *second, *third}))
    assert used == ["in_order"] * 3


LATE = {
    "before the current version": Record(1, "z", 4, 0, 9),
    "the current version once more": Record(1, "b", 5, 0, 1),
    "at the time of the current version, of a smaller offset": Record(1, "z", 5, 0, 0),
    "before a version that has ended": Record(1, "z", 0, 0, 9),
    "before a deletion": Record(2, "z", 4, 0, 9),
    "before the deletion of what never was": Record(3, "z", 4, 0, 9),
}


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(one, id=name, marks=() if name == "before a deletion" else pytest.mark.full)
        for name, one in LATE.items()
    ],
)
def test_a_late_record_makes_the_longer_statement_follow(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: Record
) -> None:
    used = statements(monkeypatch)
    table = Table(spark, tmp_path / "table", order_by="at", history=True)
    known = [
        Record(1, "a", 1, 0, 0),
        Record(1, "b", 5, 0, 1),
        Record(2, "c", 1, 0, 2),
        Record(2, None, 5, 0, 3),
        Record(3, None, 5, 0, 4),
    ]
    batch = [late, Record(4, "d", 6, 0, 10)]
    assert [table.write(known), table.write(batch)] == [1, 2]
    assert table.rows() == all_versions(list({*known, *batch}))
    assert used == ["in_order", "in_order", "history"]


def test_the_last_offset_wins_a_tombstone_deletes_and_a_batch_comes_once(
    spark: Any, tmp_path: Path
) -> None:
    table = Table(spark, tmp_path / "table")
    first = [Record(1, "a", 9, 0, 0), Record(1, "b", 0, 0, 1), Record(2, "c", 0, 1, 0)]
    assert table.write(first) == 1
    assert table.write([Record(1, None, 0, 0, 2), Record(3, "d", 0, 0, 3)]) == 2
    # Cut off and written again: nothing of the first batch comes back.
    assert table.write(first, number=0) is None

    assert table.rows() == [(2, "c", 0, 1, 0), (3, "d", 0, 0, 3)]
    history = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path}/table`").collect()
    assert [row["userMetadata"] for row in history] == ['{"batch": 1}', '{"batch": 0}', None]
    assert table.write([]) == 3  # nothing to merge: the batch is noted all the same
    assert table.sink.last_batch("query") == 2


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(
            [Record(1, "x", 0, 0, 1), Record(1, "y", 0, 1, 0)],
            marks=pytest.mark.full,
            id="both in one batch",
        ),
        pytest.param([Record(1, "y", 0, 1, 0)], id="the other one is in the table"),
    ],
)
def test_a_key_in_two_partitions_needs_an_order(
    spark: Any, tmp_path: Path, second: list[Record]
) -> None:
    table = Table(spark, tmp_path / "table")
    table.write([Record(1, "a", 0, 0, 0)])
    with pytest.raises(Exception, match=r'OTTLA_UNORDERED_KEY {"id":1}'):
        table.write(second)
    assert table.rows() == [(1, "a", 0, 0, 0)]


TWO_TOPICS = "id INT, word STRING, at INT, topic STRING, partition INT, offset BIGINT"


def keyed_sink(
    spark: Any, folder: Path, schema: str, position: RecordPosition, **how: Any
) -> DeltaSink:
    """A table, made, of rows whose place is given."""
    columns = spark.createDataFrame([], schema).schema
    keyed = read_keyed_table(columns, ["id"], position=position, **how)
    sink = DeltaSink(spark, find_target(spark, folder), columns, keyed=keyed)
    sink.make()
    return sink


def test_records_of_two_topics_with_the_same_numbers_are_two(spark: Any, tmp_path: Path) -> None:
    position = RecordPosition(("topic", "partition", "offset"))
    rows = [(1, "of a", 5, "a", 0, 0), (1, "of b", 5, "b", 0, 0), (1, "newer", 6, "a", 0, 1)]
    one, two, newer = (spark.createDataFrame([row], TWO_TOPICS) for row in rows)
    history = keyed_sink(spark, tmp_path / "h", TWO_TOPICS, position, order_by="at", history=True)
    # The second one comes late, so both statements meet the version of the other topic.
    for number, frame in enumerate((one, newer, two, two)):
        history.write(frame, Batch("query", number, ""))
    found = spark.read.format("delta").load(str(tmp_path / "h")).orderBy("valid_from", "topic")
    ends = [(row["word"], row["valid_to"], row["is_current"]) for row in found.collect()]
    assert ends == [("of a", 5, False), ("of b", 6, False), ("newer", None, True)]

    upsert = keyed_sink(spark, tmp_path / "u", TWO_TOPICS, position)
    upsert.write(one, Batch("query", 0, ""))
    with pytest.raises(Exception, match=r'OTTLA_UNORDERED_KEY {"id":1}'):
        upsert.write(two, Batch("query", 1, ""))


@pytest.mark.parametrize("how", [{}, {"order_by": "at", "history": True}])
def test_two_rows_of_one_record_stop_the_query_where_nothing_orders_them(
    spark: Any, tmp_path: Path, how: dict[str, Any]
) -> None:
    schema = "id INT, word STRING, at INT, partition INT, offset BIGINT"
    sink = keyed_sink(
        spark,
        tmp_path / "t",
        schema,
        RecordPosition(("partition", "offset"), is_shared=True),
        **how,
    )
    apart = [(1, "a", 5, 0, 0), (2, "b", 5, 0, 0), (1, "c", 6, 0, 1)]
    sink.write(spark.createDataFrame(apart, schema), Batch("query", 0, ""))
    both = [(1, "d", 7, 0, 2), (1, "e", 7, 0, 2)]
    with pytest.raises(Exception, match=r'OTTLA_SHARED_POSITION {"id":1}'):
        sink.write(spark.createDataFrame(both, schema), Batch("query", 1, ""))
    found = spark.read.format("delta").load(str(tmp_path / "t")).select("word").collect()
    assert sorted(row["word"] for row in found) == (["a", "b", "c"] if how else ["b", "c"])


@pytest.mark.full
def test_new_columns_are_added_before_the_merge(spark: Any, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "table")
    table.write([Record(1, "a", 0, 0, 0), Record(2, "b", 0, 0, 1)])

    wider = spark.createDataFrame([(2, "c", 1, 0, 2, False, 7)], f"{SCHEMA}, extra INT")
    keyed = read_keyed_table(wider.schema, ["id"])
    sink = DeltaSink(spark, table.sink.target, wider.schema, "add", keyed=keyed)
    assert sink.check() == [f"The table {tmp_path}/table gets the column extra (int)"]
    sink.make()
    sink.write(wider, Batch("query", 1, ""))

    assert table.rows() == [(1, "a", 0, 0, 0, None), (2, "c", 1, 0, 2, 7)]
    properties = sink.table.snapshot().properties()
    assert properties["delta.enableDeletionVectors"] == "true"


@pytest.mark.parametrize("wanted", [pytest.param(True, marks=pytest.mark.full), False, None])
def test_a_merge_writes_deletion_vectors_unless_they_are_not_wanted(
    spark: Any, tmp_path: Path, wanted: bool | None
) -> None:
    table = Table(spark, tmp_path / "table", wanted)
    table.write([Record(number, "a", 0, 0, number) for number in range(9)])
    table.write([Record(0, "b", 1, 0, 9), Record(1, None, 1, 0, 10)])

    assert [row[:2] for row in table.rows()] == [(0, "b"), *((each, "a") for each in range(2, 9))]
    has_them = wanted is not False
    assert bool(list((tmp_path / "table").rglob("deletion_vector_*.bin"))) is has_them
    features = table.sink.table.snapshot().reader_features()
    assert ("deletionVectors" in features) is has_them
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{tmp_path}/table`").first()
    assert (detail["minReaderVersion"] == 1) is not has_them


def executions(spark: Any) -> dict[int, str]:
    """The plans of the executions that Spark remembers, by their number."""
    known = spark._jsparkSession.sharedState().statusStore().executionsList()
    each = [known.apply(index) for index in range(known.size())]
    return {int(one.executionId()): str(one.physicalPlanDescription()) for one in each}


def planned_joins(spark: Any, before: dict[int, str]) -> list[str]:
    """How Spark planned its executions with a join before it ran them, without those `before`."""
    described = [plan for number, plan in executions(spark).items() if number not in before]
    plans = [plan.partition("== Initial Plan ==")[2].partition("\n\n")[0] for plan in described]
    return [plan for plan in plans if "Join" in plan]


def sends_a_table(plan: str) -> bool:
    """Whether files that are read are sent to all tasks: a node's own lines are indented more."""
    sent_at: int | None = None
    for line in plan.splitlines():
        indent = len(line) - len(line.lstrip(" :+-"))
        if sent_at is not None and indent <= sent_at:
            sent_at = None
        if sent_at is None and "BroadcastExchange" in line:
            sent_at = indent
        if sent_at is not None and "Scan parquet" in line:
            return True
    return False


def test_a_table_is_not_sent_to_all_tasks_for_the_size_of_its_files(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    table = Table(spark, tmp_path / "table")
    table.write([Record(1, "a", 0, 0, 0), Record(2, "b", 0, 0, 1)])
    before = executions(spark)
    table.write([Record(2, "c", 0, 0, 2)])
    small = planned_joins(spark, before)

    monkeypatch.setattr(merge, "MAX_BROADCAST_FILES_BYTES", 100)
    before = executions(spark)
    table.write([Record(2, "d", 0, 0, 3)])
    large = planned_joins(spark, before)

    assert any(map(sends_a_table, small))
    assert large
    assert not any(map(sends_a_table, large))
    assert spark.conf.get("spark.sql.autoBroadcastJoinThreshold") == limit
    assert spark.conf.get("spark.sql.adaptive.autoBroadcastJoinThreshold", None) is None
    assert table.rows() == [(1, "a", 0, 0, 0), (2, "d", 0, 0, 3)]


def test_an_update_reads_no_more_of_the_table_than_keys_and_partitions(
    spark: Any, tmp_path: Path
) -> None:
    columns = "id BIGINT, word STRING, partition INT, offset BIGINT"
    schema = spark.createDataFrame([], columns).schema
    keyed = read_keyed_table(schema, ["id"])
    sink = DeltaSink(spark, find_target(spark, tmp_path / "table"), schema, keyed=keyed)
    assert sink.check() == []
    sink.make()
    rows = spark.createDataFrame([(1, "a", 0, 0), (2, "b", 1, 0)], columns)
    sink.write(rows, Batch("query", 0, "{}"))
    before = executions(spark)

    sink.write(spark.createDataFrame([(1, "c", 0, 1)], columns), Batch("query", 1, "{}"))

    found = [plan for number, plan in executions(spark).items() if number not in before]
    joins = [plan for plan in found if "Join" in plan and "Scan parquet" in plan]
    read = {columns for plan in joins for columns in re.findall(r"ReadSchema: (\S+)", plan)}
    assert any("partition:int" in columns for columns in read)
    assert not any("word" in columns for columns in read)
    kept = spark.read.format("delta").load(str(tmp_path / "table")).collect()
    assert sorted(map(tuple, kept)) == [(1, "c", 0, 1), (2, "b", 1, 0)]


def test_the_rows_of_a_batch_are_kept_in_memory_unless_the_user_says_where(
    spark: Any,
) -> None:
    kept = "spark.databricks.delta.merge.materializeSource.rddStorageLevel"
    batch = Batch("query", 0, "{}")
    assert merge._settings(spark, batch)[kept] == "MEMORY_AND_DISK"
    with settings_of(spark, {kept: "DISK_ONLY_2"}):
        assert merge._settings(spark, batch)[kept] == "DISK_ONLY_2"


def test_the_user_s_session_keeps_its_own_settings(spark: Any, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "table")
    table.write([Record(1, "a", 0, 0, 0)])

    spark.range(1).write.format("delta").save(str(tmp_path / "other"))

    commit = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path}/other`").first()
    assert commit["userMetadata"] is None
    assert not [view for view in spark.catalog.listTables() if view.name.startswith("ottla_batch")]
