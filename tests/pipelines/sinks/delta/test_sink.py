"""What a Delta table refuses before the query starts, by what it has; the writes need Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.delta import sink as delta
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.delta.target import Target
from ottla.pipelines.target.commit_metadata import CommitMetadata
from ottla.pipelines.target.delta_table import Commit
from ottla.pipelines.target.keyed_table import KeyedTable
from ottla.pipelines.target.port import Batch

ROW = StructType().add("id", "long").add("day", "date")
_KEPT = "delta.setTransactionRetentionDuration"
HISTORY = ("valid_from timestamp", "valid_to timestamp", "is_current boolean")


def columns(*wanted: str) -> StructType:
    made = StructType()
    for each in wanted:
        name, kind = each.split(" ", 1)
        made = made.add(name, kind)
    return made


class Table:
    """A table with this schema, None where there is no table."""

    location = "file:/lake/t"

    def __init__(
        self,
        schema: StructType | None = None,
        *,
        partitioned: tuple[str, ...] = (),
        other_files: bool = False,
        writers: dict[str, int] | None = None,
        properties: dict[str, str] | None = None,
        reader_features: tuple[str, ...] = (),
    ) -> None:
        self.schema = schema
        self.partitioned = partitioned
        self.other_files = other_files
        self.last_batches = writers or {}
        self.properties = properties or {}
        self.reader_features = frozenset(reader_features)
        self.is_forgotten = False

    def holds_other_files(self) -> bool:
        return self.other_files

    def snapshot(self) -> Any:
        return SimpleNamespace(
            version=-1 if self.schema is None else 3,
            table_id="" if self.schema is None else "id-table",
            schema=self.schema,
            partition_columns=self.partitioned,
            written_ms=lambda: dict.fromkeys(self.last_batches),
            properties=lambda: self.properties,
            reader_features=lambda: self.reader_features,
        )

    def writers(self) -> dict[str, int]:
        return self.last_batches

    def known_id(self) -> str:
        return str(self.snapshot().table_id)

    def commits(self, most: int = 1_000) -> list[Commit]:
        return [Commit(3, "newest", {}), Commit(2, "", {})]

    def forget(self) -> None:
        self.is_forgotten = True


def sink(monkeypatch: pytest.MonkeyPatch, table: Table, **how: Any) -> DeltaSink:
    def at(spark: Any, location: str) -> Table:
        assert location == table.location
        return table

    monkeypatch.setattr(delta, "DeltaTable", at)
    spark: Any = None
    return DeltaSink(spark, Target("/lake/t", "file:/lake/t", False), ROW, **how)


def refusal(monkeypatch: pytest.MonkeyPatch, table: Table, **how: Any) -> str:
    with pytest.raises(PipelineError) as refused:
        sink(monkeypatch, table, **how).check()
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("table", "how"),
    [
        (Table(), {}),
        (Table(), {"partition_by": ("day",)}),
        (Table(ROW), {}),
        (Table(ROW, partitioned=("day",)), {}),
        (Table(ROW, partitioned=("day",)), {"partition_by": ("day",)}),
        (Table(columns("ID long", "Day date", "more string")), {}),
    ],
)
def test_rows_that_fit(monkeypatch: pytest.MonkeyPatch, table: Table, how: dict[str, Any]) -> None:
    assert sink(monkeypatch, table, **how).check() == []


@pytest.mark.parametrize(
    ("table", "how", "said"),
    [
        (Table(), {"partition_by": ("hour",)}, "partition_by='hour' is not a column of the frame"),
        (Table(other_files=True), {}, "/lake/t contains files but no Delta table"),
        (Table(ROW), {"partition_by": ("day",)}, "is partitioned by no column, not by day: leave"),
        (
            Table(ROW, partitioned=("day", "id")),
            {"partition_by": ("id", "day")},
            "is partitioned by day, id, not by id, day: leave out partition_by",
        ),
        (
            Table(columns("id long")),
            {},
            "The frame has the column day (date), which the table /lake/t does not have",
        ),
    ],
)
def test_rows_that_do_not_fit(
    monkeypatch: pytest.MonkeyPatch, table: Table, how: dict[str, Any], said: str
) -> None:
    assert said in refusal(monkeypatch, table, **how)


def test_new_columns_may_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    notices = sink(monkeypatch, Table(columns("id long")), schema_changes="add").check()
    assert notices == ["The table /lake/t gets the column day (date)"]


KEYED = KeyedTable(("id",), ("id", "day"))
WITH_HISTORY = KeyedTable(("id",), ("id", "day"), order_by="day", history=True)
MARKING = KeyedTable(("id",), ("id", "day"), deletes="mark")
OF_ROW = ("id long", "day date")


@pytest.mark.parametrize(
    ("keyed", "table", "said"),
    [
        (KEYED, columns(*OF_ROW), None),
        (WITH_HISTORY, columns(*OF_ROW, *HISTORY), None),
        (WITH_HISTORY, columns(*OF_ROW), "has no valid_from, valid_to, is_current, which history"),
        (KEYED, columns(*OF_ROW, *HISTORY), "so it was made with history=True: write history=Tr"),
        (MARKING, columns(*OF_ROW, "is_deleted boolean"), None),
        (MARKING, columns(*OF_ROW), "has no is_deleted, which deletes='mark' needs"),
        (KEYED, columns(*OF_ROW, "is_deleted boolean"), "made with deletes='mark': write deletes"),
    ],
)
def test_a_table_of_another_kind(
    monkeypatch: pytest.MonkeyPatch, keyed: KeyedTable, table: StructType, said: str | None
) -> None:
    if said is None:
        assert sink(monkeypatch, Table(table), keyed=keyed).check() == []
    else:
        assert said in refusal(monkeypatch, Table(table), keyed=keyed)


VECTORS = "delta.enableDeletionVectors"


@pytest.mark.parametrize(
    ("wanted", "properties", "features"),
    [
        (None, {VECTORS: "true"}, ("deletionVectors",)),
        (None, {}, ()),
        (True, {VECTORS: "true"}, ("deletionVectors",)),
        (False, {}, ("columnMapping",)),
        (False, {VECTORS: "false"}, ()),
    ],
)
def test_a_table_with_or_without_deletion_vectors_as_wanted(
    monkeypatch: pytest.MonkeyPatch,
    wanted: bool | None,
    properties: dict[str, str],
    features: tuple[str, ...],
) -> None:
    table = Table(ROW, properties=properties, reader_features=features)
    assert sink(monkeypatch, table, deletion_vectors=wanted).check() == []


@pytest.mark.parametrize("set_to", ["true", "false"])
def test_a_table_that_has_had_deletion_vectors_says_how_to_take_them_out(
    monkeypatch: pytest.MonkeyPatch, set_to: str
) -> None:
    """Readers go by the table's features, which stay when the property is set to false."""
    table = Table(ROW, properties={VECTORS: set_to}, reader_features=("deletionVectors",))
    said = refusal(monkeypatch, table, deletion_vectors=False)
    assert said.startswith("The table /lake/t has deletion vectors, and deletion_vectors=False is")
    assert "use a new table and checkpoint" in said
    assert said.endswith(
        f"ALTER TABLE delta.`file:/lake/t` SET TBLPROPERTIES ('{VECTORS}' = 'false'); "
        "REORG TABLE delta.`file:/lake/t` APPLY (PURGE); "
        "ALTER TABLE delta.`file:/lake/t` DROP FEATURE deletionVectors"
    )


def test_a_table_without_deletion_vectors_does_not_get_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = refusal(monkeypatch, Table(ROW), deletion_vectors=True)
    assert said.startswith("The table /lake/t was made without deletion vectors, and deletion_")
    assert said.endswith(f"SET TBLPROPERTIES ('{VECTORS}' = 'true')")


def test_a_table_whose_commits_do_not_say_what_they_read(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Table(ROW, writers={"query-1": 4})
    with pytest.raises(PipelineError, match="do not say where they ended in topic 't'"):
        sink(monkeypatch, written).check_start("t", continues=True)
    sink(monkeypatch, written).check_start("t", continues=False)
    sink(monkeypatch, Table(ROW)).check_start("t", continues=True)


def test_a_table_that_queries_wrote_may_have_forgotten_what_they_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = Table(ROW, writers={"query-1": 4})
    assert sink(monkeypatch, written).forgets() == "only its latest 2 commits are known"
    monkeypatch.setattr(written, "commits", lambda: [Commit(1, "", {}), Commit(0, "", {})])
    assert sink(monkeypatch, written).forgets() == ""
    assert sink(monkeypatch, Table(ROW)).forgets() == ""
    assert sink(monkeypatch, Table()).forgets() == ""


def test_a_clone_does_not_say_which_batches_its_rows_are_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its history begins with the CLONE, and it knows none of the queries that wrote the rows."""
    clone = {"source": "delta.`file:/lake/a`", "sourceVersion": "3", "isShallow": "true"}
    table = Table(ROW)
    monkeypatch.setattr(table, "commits", lambda: [Commit(1, "", {}), Commit(0, "", clone)])
    assert sink(monkeypatch, table).forgets() == (
        "it has rows of delta.`file:/lake/a` by CLONE, which does not bring the commits of queries"
    )


def test_what_the_table_says_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(ROW, writers={"query-1": 4})
    made = sink(monkeypatch, table)
    assert (made.table_id(), list(made.metadata())) == ("id-table", ["newest", ""])
    assert (made.last_batch("query-1"), made.last_batch("query-2")) == (4, None)
    made.forget()
    assert table.is_forgotten


def said(query_id: str, batch: int, *after: str) -> str:
    return CommitMetadata("q", query_id, batch, "c", {"t": "id"}, {"t": {0: 9}}, after=after).text()


@pytest.mark.parametrize("others", [0, 3, 300])
@pytest.mark.parametrize("asks_again", [False, True])
def test_what_came_before_a_batch_is_compared_though_others_write_after_it(
    monkeypatch: pytest.MonkeyPatch, others: int, asks_again: bool
) -> None:
    table = Table(ROW)
    made = sink(monkeypatch, table)
    texts = ["", said("query-1", 0)]
    monkeypatch.setattr(
        table,
        "commits",
        lambda most=1_000: [
            Commit(version, text, {}) for version, text in reversed([*enumerate(texts)][-most:])
        ],
    )
    assert made.held("query-1").batch == 0  # the start
    texts.append(said("query-2", 0, "query-1"))
    if asks_again:
        assert made.held("query-1").batch == 0  # as for the decision of a batch
    texts.append(said("query-1", 1))
    texts.extend(said("query-3", number) for number in range(others))
    with pytest.raises(PipelineError, match="was continued by the query query-2"):
        made._check_between(3, Batch("query-1", 1, ""))


def test_a_table_that_was_made_again_is_noticed_whatever_its_version_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table(ROW)
    made = sink(monkeypatch, table)
    made._made_id = "id-table"
    made._check_between(3, Batch("query-1", 0, ""))
    monkeypatch.setattr(table, "known_id", lambda: "id-other")
    with pytest.raises(PipelineError, match="batch 1 was written to the new one, which lacks"):
        made._check_between(4, Batch("query-1", 1, ""))


def test_a_batch_that_a_commit_shows_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with setTransactionRetentionDuration forgets the last batch of a writer."""
    table = Table(ROW)
    monkeypatch.setattr(table, "commits", lambda: [Commit(3, said("query-1", 5), {})])
    made = sink(monkeypatch, table)
    frame: Any = SimpleNamespace(sparkSession=None)
    assert made.held("query-1").batch == 5
    assert made.write(frame, Batch("query-1", 5, "")) is None
    with pytest.raises(AttributeError):  # is written: the frame is none
        made.write(frame, Batch("query-1", 5, "", once=False))


def test_a_table_that_forgets_its_writers_has_their_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table(ROW, properties={_KEPT: "interval 7 days"})
    texts = ["", said("query-1", 0), said("query-2", 4), said("query-1", 1)]
    commits = [Commit(version, text, {}) for version, text in reversed([*enumerate(texts)])]
    monkeypatch.setattr(table, "commits", lambda most=1_000: iter(commits))
    frame: Any = SimpleNamespace(sparkSession=None)

    for number in (0, 1):
        made = sink(monkeypatch, table)
        assert made.write(frame, Batch("query-1", number, "")) is None
    assert not made._has(Batch("query-1", 2, ""))
    assert not made._has(Batch("query-1", 1, "", once=False))
    assert not made._has(Batch("query-3", 0, ""))
    table.properties.clear()  # Delta itself knows the last batch of each
    assert not sink(monkeypatch, table)._has(Batch("query-1", 1, ""))
    unsure = sink(monkeypatch, Table(ROW, properties={_KEPT: "interval 7 days"}))._unsure
    assert unsure("query-1", [], since_ms=9) == "it knows who wrote to it for 7 days alone"


def test_a_table_that_only_its_catalog_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is known when it is made: nothing is asked before."""
    monkeypatch.setattr(delta, "DeltaTable", None)
    spark: Any = None
    made = DeltaSink(spark, Target("lake.t", "", True), ROW)
    assert (made.check(), made.table_id(), made.rows(), made.last_batch("q")) == (
        [],
        "",
        None,
        None,
    )
    assert list(made.metadata()) == []
    made.check_start("t", continues=True)
    made.forget()


@pytest.mark.parametrize("keyed", [None, KeyedTable(("id",), ("id", "day"))])
def test_types_that_do_not_hold_each_value(
    monkeypatch: pytest.MonkeyPatch, keyed: KeyedTable | None
) -> None:
    said = refusal(monkeypatch, Table(columns("id string", "day integer")), keyed=keyed)
    assert "The column day is date in the rows and int in the table /lake/t" in said
    assert said.endswith("cast it in the query, or write to a new table")


def test_keys_that_the_table_pads(monkeypatch: pytest.MonkeyPatch) -> None:
    char = {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}
    varchar = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}
    padded = StructType().add("ID", "string", True, char).add("day", "date")
    rows = StructType().add("id", "string").add("day", "date")
    for keyed, argument in (
        (KeyedTable(("id",), ("id", "day")), "keys"),
        (KeyedTable(("day",), ("id", "day"), order_by="id"), "order_by"),
    ):
        made = sink(monkeypatch, Table(padded), keyed=keyed)
        made.schema = rows
        with pytest.raises(PipelineError) as refused:
            made.check()
        said = str(refused.value)
        assert f"The column ID of the table /lake/t, which is in {argument}, is CHAR(5)" in said
    by_id, by_day = (KeyedTable((key,), ("id", "day")) for key in ("id", "day"))
    for table, fitting in (
        (StructType().add("id", "string", True, varchar).add("day", "date"), by_id),
        (padded, by_day),
        (padded, None),
    ):
        made = sink(monkeypatch, Table(table), keyed=fitting)
        made.schema = rows
        assert made.check() == []


def test_a_column_that_the_table_numbers_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    keyed = KeyedTable(("id",), ("id", "day"))
    for may_be_given, keys, is_refused in (
        (False, None, True),
        (True, None, False),
        (True, keyed, True),
    ):
        numbers = {"delta.identity.start": 1, "delta.identity.allowExplicitInsert": may_be_given}
        table = StructType().add("ID", "long", True, numbers).add("day", "date")
        made = sink(monkeypatch, Table(table), keyed=keys)
        if not is_refused:
            assert made.check() == []
            continue
        with pytest.raises(PipelineError, match="ID of the table /lake/t is an identity column"):
            made.check()
        made.schema = StructType().add("day", "date")
        made.keyed = None
        assert made.check() == []


def test_a_table_that_lacks_the_key_does_not_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    keyed = KeyedTable(("id",), ("id", "day"))
    table = Table(columns("kid long", "day date"))
    said = refusal(monkeypatch, table, keyed=keyed, schema_changes="add")
    assert "The table /lake/t has no column id, which keys= names" in said
    assert sink(monkeypatch, Table(columns("ID long")), keyed=keyed, schema_changes="add").check()


@pytest.mark.parametrize("keyed", [None, KeyedTable(("id",), ("id", "day"))])
def test_a_column_that_the_table_widens(
    monkeypatch: pytest.MonkeyPatch, keyed: KeyedTable | None
) -> None:
    int_id = columns("id integer", "day date")
    for table, changes in (
        (Table(int_id), "add"),
        (Table(int_id, properties={"delta.enableTypeWidening": "true"}), "refuse"),
    ):
        said = refusal(monkeypatch, table, keyed=keyed, schema_changes=changes)
        assert "The column id is bigint in the rows and int in the table /lake/t" in said
        assert "cast it in the query, or have the table widen it: schema_changes='add' and" in said
        assert "ALTER TABLE delta.`file:/lake/t` SET TBLPROPERTIES ('delta.enableTyp" in said
    table = Table(int_id, properties={"delta.enableTypeWidening": "true"})
    assert sink(monkeypatch, table, keyed=keyed, schema_changes="add").check() == [
        "The column id of the table /lake/t, int, becomes bigint"
    ]
