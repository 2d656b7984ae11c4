"""The constraints of a Delta table: which rows they refuse, and that Delta agrees."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import to_delta, topic
from ottla.pipelines.target.constraints import (
    ROW,
    fitting,
    is_marked,
    mark,
    partition_constraints,
    read_constraints,
    refused,
)
from ottla.pipelines.target.delta_table import DeltaTable

pytestmark = pytest.mark.spark

TAGS = {"de": [("ab",), None]}
ROWS = [
    (1, "a", ("x", 1), TAGS),
    (2, None, ("x", 1), TAGS),
    (None, "c", ("x", 1), TAGS),
    (99, "d", ("x", 1), TAGS),
    (5, "toolong", ("x", 1), TAGS),
    (6, "f", (None, 1), TAGS),
    (7, "g", None, TAGS),
    (8, "h", ("x", 1), {"de": [("ab",), ("abc",)]}),
]
FRAME = (
    "id BIGINT, word STRING, place STRUCT<name: STRING, height: INT>, "
    "tags MAP<STRING, ARRAY<STRUCT<tag: STRING>>>"
)


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> str:
    """A table with each kind of constraint; returns its name."""
    name = f"delta.`{tmp_path}/table`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, word VARCHAR(5) NOT NULL, "
        "place STRUCT<name: STRING NOT NULL, height: INT>, "
        "tags MAP<VARCHAR(2), ARRAY<STRUCT<tag: VARCHAR(2)>>>, more INT) USING delta"
    )
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT small CHECK (id < 50)")
    return name


def constraints_of(spark: Any, folder: Path) -> Any:
    snapshot = DeltaTable(spark, str(folder)).snapshot()
    return snapshot, read_constraints(snapshot.properties(), snapshot.schema)


def test_every_kind_of_constraint_is_found_and_delta_agrees(
    spark: Any, table: str, tmp_path: Path
) -> None:
    snapshot, constraints = constraints_of(spark, tmp_path / "table")
    frame = spark.createDataFrame(ROWS, FRAME)

    marked = mark(frame, snapshot.schema, constraints)
    good, bad = fitting(marked), refused(marked)

    assert good.schema == frame.schema
    assert [row["id"] for row in good.collect()] == [1]
    reasons = {json.loads(row[ROW])["id"]: row["reason"] for row in bad.collect()}
    check = "violates the CHECK constraint small (id < 50)"
    assert reasons == {
        2: "the column word is null, but NOT NULL",
        None: check,  # null violates a CHECK of Delta
        99: check,
        5: "the column word is longer than varchar(5) allows",
        6: "the column place.name is null, but NOT NULL",
        7: "the column place.name is null, but NOT NULL",
        8: "a text in the column tags is longer than "
        "map<varchar(2),array<struct<tag:varchar(2)>>> allows",
    }
    good.write.format("delta").mode("append").save(f"{tmp_path}/table")
    for row in ROWS[1:]:
        with pytest.raises(Exception, match=r"CONSTRAINT|EXCEED|constraint"):
            spark.createDataFrame([row], FRAME).write.format("delta").mode("append").save(
                f"{tmp_path}/table"
            )
    assert spark.table(table).count() == 1


def test_a_refused_row_is_whole_and_keeps_its_place(spark: Any, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path}/table`"
    spark.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, raw BINARY, offset BIGINT) USING delta")
    snapshot, constraints = constraints_of(spark, tmp_path / "table")
    frame = spark.createDataFrame([(None, b"\xff\x00", 7)], "id BIGINT, raw BINARY, offset BIGINT")

    bad = refused(mark(frame, snapshot.schema, constraints))

    assert bad.columns == ["offset", "reason", ROW]
    row = bad.first()
    assert row["offset"] == 7
    assert json.loads(row[ROW]) == {"id": None, "raw": "/wA=", "offset": 7}


def test_what_cannot_be_violated_or_evaluated_costs_nothing(spark: Any, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path}/table`"
    spark.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, word STRING) USING delta")
    snapshot, constraints = constraints_of(spark, tmp_path / "table")
    frame = spark.range(3).select("id")

    assert len(constraints) == 1
    # Spark itself knows that range() has no null.
    assert mark(frame, snapshot.schema, constraints) is frame
    assert not is_marked(frame)
    assert mark(frame, snapshot.schema, ()) is frame
    unknown = read_constraints({"delta.constraints.odd": "nowhere > 1"}, frame.schema)
    assert mark(frame, snapshot.schema, unknown) is frame
    # A column that the rows lack is null in the table: its CHECK is evaluated.
    missing = read_constraints({"delta.constraints.word": "word <> ''"}, frame.schema)
    assert refused(mark(frame, snapshot.schema, missing)).count() == 3


def test_a_stream_goes_on_and_refused_rows_are_kept_once(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"
    name = new_topic()
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, word STRING NOT NULL) USING delta")
    spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT small CHECK (id < 5)")
    produce(
        name,
        [
            *[("k", json.dumps({"id": n, "word": "w"})) for n in range(10)],
            ("k", json.dumps({"id": 1})),
            ("bad", "not JSON"),
        ],
    )
    frame = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT, word STRING")

    def run() -> None:
        to_delta(
            frame.select("value.*"), table, checkpoint=checkpoint, trigger={"availableNow": True}
        ).awaitTermination()

    run()
    # As after a kill between Delta's commit and Spark's own note that the batch is done.
    (checkpoint / "commits" / "0").unlink()
    (checkpoint / "commits" / ".0.crc").unlink(missing_ok=True)
    run()

    kept = spark.read.format("delta").load(str(table))
    assert sorted(row["id"] for row in kept.collect()) == [0, 1, 2, 3, 4]
    refused = spark.read.format("delta").load(f"{table}_rejected")
    found = sorted(
        (row["reason"], json.loads(row[ROW])["id"] if row[ROW] else bytes(row["key"]))
        for row in refused.collect()
    )
    assert found == [
        ("the column word is null, but NOT NULL", 1),
        ("value is not a JSON object of the schema", b"bad"),
        *[("violates the CHECK constraint small (id < 5)", n) for n in range(5, 10)],
    ]
    assert "7 rows of " in caplog.text


def test_texts_that_would_become_null_in_a_column_of_folders(spark: Any, tmp_path: Path) -> None:
    words = [("a",), (" ",), (None,), ("",), ("__HIVE_DEFAULT_PARTITION__",)]
    frame = spark.createDataFrame(words, "Word STRING").selectExpr("1 AS id", "Word", "1 AS n")
    assert partition_constraints(frame.schema, ("id", "n")) == ()
    found = partition_constraints(frame.schema, ("word",))
    marked = mark(frame, frame.schema, found)
    assert sorted(row["Word"] or "null" for row in fitting(marked).collect()) == [" ", "a", "null"]
    assert {row["reason"][:22] for row in refused(marked).collect()} == {"the column Word is '' "}
    for kind in ("delta", "parquet"):
        folder = str(tmp_path / kind)
        fitting(marked).write.format(kind).partitionBy("Word").save(folder)
        rows = spark.read.schema("id INT, n INT, Word STRING") if kind == "parquet" else spark.read
        kept = rows.format(kind).load(folder).collect()
        assert sorted(row["Word"] or "null" for row in kept) == [" ", "a", "null"]
        # These are the very texts.
        for text in ("''", "'__HIVE_DEFAULT_PARTITION__'"):
            row = frame.where(f"Word = {text}")
            row.write.format(kind).partitionBy("Word").mode("append").save(folder)
        kept = rows.format(kind).load(folder).collect()
        assert [row["Word"] for row in kept].count(None) == 3
