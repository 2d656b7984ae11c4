"""Histories that track columns, and nulls that keep what a key has, on a real Delta table.

What the table must have is computed from all records at once.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.delta.target import find_target
from ottla.pipelines.target.keyed_table import read_keyed_table
from ottla.pipelines.target.port import Batch

pytestmark = pytest.mark.spark

SCHEMA = (
    "id BIGINT, city STRING, score INT, more MAP<STRING, INT>, at INT, partition INT, "
    "offset BIGINT, tombstone BOOLEAN"
)
NAMES = ("id", "city", "score", "more", "at", "partition", "offset")
Row = tuple[Any, ...]
"""A record as the frame has it: the columns of NAMES, and whether it is a tombstone."""


def some_records(seed: int, count: int, *, in_order: bool) -> list[Row]:
    """Records of three keys; `in_order`: by `at` as by offset."""
    chosen = random.Random(seed)
    found = []
    for n in range(count):
        is_deleted = chosen.random() < 0.15
        city = chosen.choice(["Bern", "Ulm", None])
        score = chosen.choice([n, None])
        more = chosen.choice([{"n": n}, None])
        at = n // 2 if in_order else chosen.randrange(count)
        values = (None, None, None) if is_deleted else (city, score, more)
        found.append((chosen.randrange(3), *values, at, 0, n, is_deleted))
    return found


def filled(records: list[Row]) -> list[Row]:
    """The records of one key in their order, whose nulls are what the key had before."""
    had: list[Any] = [None] * 3
    found = []
    for one in records:
        if one[-1]:
            had = [None] * 3
            found.append(one)
            continue
        had = [old if new is None else new for new, old in zip(one[1:4], had, strict=True)]
        found.append((one[0], *had, *one[4:]))
    return found


def by_key(records: list[Row], *, ignore_nulls: bool) -> list[list[Row]]:
    ordered = sorted(set_of(records), key=lambda one: one[4:7])
    keys = sorted({one[0] for one in ordered})
    found = [[one for one in ordered if one[0] == key] for key in keys]
    return [filled(one) for one in found] if ignore_nulls else found


def set_of(records: list[Row]) -> list[Row]:
    return list({one[6]: one for one in records}.values())


def versions(records: list[Row], *, track: bool, ignore_nulls: bool) -> list[Row]:
    """The history that all records give."""
    found: list[Row] = []
    for same in by_key(records, ignore_nulls=ignore_nulls):
        runs: list[list[Row]] = []
        for one in same:
            before = runs[-1][-1] if runs else None
            is_same = before is not None and not before[-1] and before[1] == one[1]
            if track and is_same and not one[-1]:
                runs[-1].append(one)
            else:
                runs.append([one])
        begins = [run[0][4] for run in runs] + [None]
        for run, follower in zip(runs, begins[1:], strict=True):
            last, since = run[-1], run[0][4]
            until = since if last[-1] else follower
            found.append((*last[:-1], since, until, follower is None and not last[-1]))
    return by_position(found)


def last_of_each(records: list[Row], *, marks: bool) -> list[Row]:
    """The table with the last record of each key that all records give, with nulls ignored."""
    last = [same[-1] for same in by_key(records, ignore_nulls=True)]
    return by_position([one if marks else one[:-1] for one in last if marks or not one[-1]])


def by_position(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row[0], row[4], row[6] is not None and row[6]))


class Table:
    """A Delta table with keys, and its batches."""

    def __init__(self, spark: Any, folder: Path, **how: Any) -> None:
        self.spark = spark
        self.schema = spark.createDataFrame([], SCHEMA).schema
        keyed = read_keyed_table(self.schema, ["id"], **how)
        target = find_target(spark, folder)
        self.sink = DeltaSink(spark, target, self.schema, keyed=keyed, compact_after=0)
        self.sink.check()
        self.sink.make()
        self.batches = 0

    def write(self, records: list[Row], number: int | None = None) -> int | None:
        frame = self.spark.createDataFrame(records, SCHEMA)
        chosen = self.batches if number is None else number
        version = self.sink.write(frame, Batch("query", chosen, f'{{"batch": {chosen}}}'))
        self.batches += number is None
        return version

    def rows(self) -> list[Row]:
        found = self.spark.read.format("delta").load(self.sink.target.location).collect()
        return by_position(list(map(tuple, found)))


MORE_SEEDS = [pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8)]


@pytest.mark.parametrize("seed", [1, *MORE_SEEDS])
@pytest.mark.parametrize(
    ("track", "ignore_nulls"),
    [
        pytest.param(True, False, id="track"),
        pytest.param(False, True, id="nulls", marks=pytest.mark.full),
        # As over the kills below.
        pytest.param(True, True, id="both", marks=pytest.mark.full),
    ],
)
def test_a_history_in_order_depends_on_the_records_alone(
    spark: Any, tmp_path: Path, seed: int, track: bool, ignore_nulls: bool
) -> None:
    how = {"track": ["city"] if track else [], "ignore_nulls": ignore_nulls}
    table = Table(spark, tmp_path / "table", order_by="at", history=True, **how)
    records = some_records(seed, 30, in_order=True)
    # Some come once more, in the next batch too.
    batches = [[*records[:14], records[3]], [*records[12:20]], records[18:]]
    assert [table.write(batch) for batch in batches] == [1, 2, 3]
    assert table.rows() == versions(records, track=track, ignore_nulls=ignore_nulls)
    assert table.write(batches[2], 2) is None


@pytest.mark.parametrize("seed", [1, *MORE_SEEDS])
def test_late_records_of_one_batch_find_their_place(spark: Any, tmp_path: Path, seed: int) -> None:
    records = some_records(seed, 24, in_order=False)
    table = Table(
        spark, tmp_path / "t", order_by="at", history=True, track=["city"], ignore_nulls=True
    )
    table.write(records)
    assert table.rows() == versions(records, track=True, ignore_nulls=True)


@pytest.mark.parametrize("seed", [1, *MORE_SEEDS])
@pytest.mark.parametrize("how", [{}, {"order_by": "at", "deletes": "mark"}], ids=["plain", "marks"])
def test_a_null_keeps_what_the_row_of_its_key_has(
    spark: Any, tmp_path: Path, seed: int, how: dict[str, Any]
) -> None:
    table = Table(spark, tmp_path / "table", ignore_nulls=True, **how)
    records = some_records(seed, 30, in_order=True)
    batches = [records[:9], records[9:13], records[13:]]
    assert [table.write(batch) for batch in batches] == [1, 2, 3]
    assert table.rows() == last_of_each(records, marks=bool(how))


A: Row = (1, "Bern", 1, None, 10, 0, 0, False)


def test_a_late_record_lies_between_versions(spark: Any, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "table", order_by="at", history=True, track=["city"])
    same = (1, "Bern", 2, None, 30, 0, 1, False)
    other = (1, "Ulm", 3, None, 40, 0, 2, False)
    table.write([A, same, other])
    late_same = (1, "Ulm", 4, None, 35, 0, 3, False)  # the next version begins with it
    within = (1, "Bern", 5, None, 20, 0, 4, False)  # makes no version
    table.write([late_same, within])
    assert table.rows() == versions(
        [A, same, other, late_same, within], track=True, ignore_nulls=False
    )
    between = (1, "Jena", 6, None, 20, 0, 5, False)
    table.write([between])
    # The table does not know of `within` by now: what comes between ends where `same` is.
    cut_off = [
        ("Bern", 10, None, 10, 20, False),
        ("Jena", 20, 5, 20, 30, False),
        ("Bern", 30, 1, 30, 35, False),
        ("Ulm", 40, 2, 35, None, True),
    ]

    def shown() -> list[Row]:
        found = [(row[1], row[4], row[6], *row[-3:]) for row in table.rows()]
        return sorted(found, key=lambda row: int(row[3]))

    assert shown() == cut_off
    # It stays as it is when records come that change nothing, and when others come beside it.
    table.write([between, (1, "Ulm", 8, None, 36, 0, 6, False)])
    assert shown() == cut_off
    table.write([(1, "Rom", 9, None, 15, 0, 7, False)])
    cut_off[0] = ("Bern", 10, None, 10, 15, False)
    assert shown() == [cut_off[0], ("Rom", 15, 7, 15, 20, False), *cut_off[1:]]


@pytest.mark.parametrize(
    ("track", "said"),
    [
        (["town"], "track: the frame has no column 'town'"),
        (["id"], "it is the same in all versions of a key"),
        (["at"], "each record has another one"),
        (["more"], "is map<string,int>, which Spark cannot compare"),
        (["city", "CITY"], "names a column twice"),
    ],
)
def test_a_column_that_cannot_be_tracked_is_refused(
    spark: Any, track: list[str], said: str
) -> None:
    schema = spark.createDataFrame([], SCHEMA).schema
    how: Callable[..., Any] = read_keyed_table
    with pytest.raises(PipelineError, match=said.replace("(", r"\(")):
        how(schema, ["id"], order_by="at", history=True, track=track)


def test_each_version_is_there_once_although_each_batch_is_killed(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them twice: before its commit, and after it when it is tried again."""
    name = new_topic(1)
    rows = topic(
        spark, name, bootstrap_servers=bootstrap, schema="id INT NOT NULL, city STRING, score INT",
        tombstones="mark", key_schema="string",
    )  # fmt: skip
    frame = rows.selectExpr(
        "CAST(key AS INT) AS id", "value.city", "value.score", "partition", "offset", "tombstone",
        "offset AS at",
    )  # fmt: skip

    def run() -> None:
        to_delta(
            frame, tmp_path / "t", checkpoint=tmp_path / "c", trigger={"availableNow": True},
            keys="id", history=True, order_by="at", track="city", ignore_nulls=True,
        ).awaitTermination()  # fmt: skip

    shipped = DeltaSink.write

    def killed_after(sink: Any, rows: Any, batch: Any) -> Any:
        shipped(sink, rows, batch)
        raise PipelineError("killed")

    def killed_before(*_: Any) -> Any:
        raise PipelineError("killed")

    batches: list[list[tuple[int, str | None, int | None] | int]] = [
        [(1, "Bern", 1), (2, "Ulm", 1), (1, None, 2)],
        [(1, "Bern", 3), (2, None, 2), 2],
        [(1, "Ulm", None), (2, None, 7), (1, "Ulm", 9)],
    ]
    for batch in batches:
        records: list[tuple[str, str | None]] = []
        for one in batch:
            if isinstance(one, int):
                records.append((str(one), None))
            else:
                value = dict(zip(("id", "city", "score"), one, strict=True))
                records.append((str(one[0]), json.dumps(value)))
        produce(name, records)
        for killed in (killed_before, killed_after):
            with monkeypatch.context() as patch:
                patch.setattr(DeltaSink, "write", killed)
                with pytest.raises(PipelineError, match="killed"):
                    run()
        run()
    found = spark.read.format("delta").load(str(tmp_path / "t"))
    columns = ("id", "city", "score", "valid_from", "valid_to", "is_current")
    versions = map(tuple, found.select(*columns).collect())
    assert sorted(versions, key=lambda row: (row[0], row[3])) == [
        (1, "Bern", 3, 0, 6, False),
        (1, "Ulm", 9, 6, None, True),
        (2, "Ulm", 2, 1, 5, False),
        (2, None, None, 5, 5, False),
        (2, None, 7, 7, None, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"track": "city"}, "is for tables with history=True"),
        ({"ignore_nulls": 1}, "ignore_nulls=1: write True or False"),
        ({"ignore_nulls": True, "keys": ()}, "it is for tables with keys"),
    ],
)
def test_arguments_for_other_tables_are_refused(
    spark: Any, tmp_path: Path, how: dict[str, Any], said: str
) -> None:
    rows = topic(spark, "t", bootstrap_servers="b:1", schema="id INT, city STRING")
    frame = rows.select("value.*", "partition", "offset")
    with pytest.raises(PipelineError, match=said):
        to_delta(frame, tmp_path / "t", checkpoint=tmp_path / "c", **({"keys": "id"} | how))
