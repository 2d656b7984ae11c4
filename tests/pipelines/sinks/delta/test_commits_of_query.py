"""What the commits of a table say of a query, and how many of them are read for it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from ottla.pipelines.checkpoint.next_batch import Held
from ottla.pipelines.sinks.delta.commits_of_query import CommitsOfQuery, commits_of
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.delta.target import find_target
from ottla.pipelines.spark.jvm import delta_log
from ottla.pipelines.spark.jvm.delta_log import LoggedCommit, Snapshot
from ottla.pipelines.target.commit_metadata import (
    CommitMetadata,
    continued_by,
    latest_of_query,
)
from ottla.pipelines.target.delta_table import Commit
from ottla.pipelines.target.restored import Restore, still_held

SCHEMA = StructType().add("id", "long")
BATCHES = 3
ENDS = {"t": {0: 20}}
OWN, OTHER, NEXT = "query-1", "query-2", "query-3"


def said(query_id: str, batch: int, *after: str) -> str:
    ends = {"t": {0: batch * 10}}
    return CommitMetadata("q", query_id, batch, "c", {"t": "id"}, ends, after=after).text()


class Reading:
    """The commits of a table with these texts, version 0 first; counts those that are read."""

    def __init__(self, texts: Sequence[str | Restore]) -> None:
        self.commits = [
            Commit(version, "", {}, float(version), text)
            if isinstance(text, Restore)
            else Commit(version, text, {}, float(version))
            for version, text in enumerate(texts)
        ]
        self.count = 0

    def newest(self, most: int = 1_000) -> Iterator[Commit]:
        for commit in self.commits[: -most - 1 : -1]:
            self.count += 1
            yield commit


def whole(query_id: str, commits: Sequence[Commit]) -> CommitsOfQuery:
    """What all commits say, the newest first."""
    kept = {commit.version for commit in still_held(commits)}
    texts = [commit.metadata for commit in commits if commit.version in kept]
    mine = [commit.batch for commit in commits if commit.version not in kept]
    newest = latest_of_query(texts, query_id)
    return CommitsOfQuery(
        newest,
        newest is not None,
        tuple(batch[1] for batch in mine if batch and batch[0] == query_id),
        continued_by(texts, query_id),
        any(commit.version == 0 for commit in commits),
        commits[0].version if commits else -1,
    )


@pytest.mark.parametrize(
    ("since", "read", "is_known"),
    [(0, 2, True), (1, 3, True), (998, 1_000, True), (999, 1_000, True), (1_000, 1_000, False)],
)
def test_the_commits_since_the_newest_of_the_query(since: int, read: int, is_known: bool) -> None:
    own = [said(OWN, batch) for batch in range(2_000)]
    table = Reading([*own, *(said(OTHER, batch) for batch in range(since))])
    found = commits_of(OWN, table.newest())
    assert found.newest_version == 1_999 + since
    assert (found.newest is not None and found.newest.batch == 1_999) is is_known
    assert (found.taken_out, found.continued_by, found.has_first_version) == ((), "", False)
    assert table.count == read


def test_a_query_that_has_written_one_batch() -> None:
    table = Reading([*("" for _ in range(500)), said(OWN, 0)])
    assert commits_of(OWN, table.newest()).is_newest
    assert table.count == 1


def test_a_query_that_has_written_none() -> None:
    table = Reading([said(OTHER, batch) for batch in range(500)])
    found = commits_of(OWN, table.newest())
    assert found == CommitsOfQuery(has_first_version=True, newest_version=499)
    assert commits_of(OWN, Reading([]).newest()) == CommitsOfQuery()


def test_a_query_that_another_one_continues_though_a_batch_was_under_way() -> None:
    own = [said(OWN, batch) for batch in range(100)]
    under_way = Reading([*own, said(NEXT, 0, OWN), said(NEXT, 1, OWN), said(OWN, 100)])
    assert commits_of(OWN, under_way.newest()).continued_by == NEXT
    assert under_way.count == 4
    assert commits_of(OWN, Reading([*own, said(NEXT, 0, OWN)]).newest()).continued_by == NEXT


def test_batches_that_a_restore_took_out() -> None:
    own = [said(OWN, batch) for batch in range(100)]
    found = commits_of(OWN, Reading([*own, Restore(90, None)]).newest())
    assert found.newest is not None
    assert (found.newest.batch, found.taken_out) == (90, tuple(range(99, 90, -1)))
    # One that was under way is in the table, after the hole.
    found = commits_of(OWN, Reading([*own, Restore(90, None), said(OWN, 100)]).newest())
    assert found.newest is not None
    assert (found.newest.batch, found.taken_out) == (100, tuple(range(99, 90, -1)))


def test_commits_of_sparks_own_sink_do_not_say_where_they_end() -> None:
    by_spark = [Commit(5 + n, "", {"queryId": OWN, "epochId": f"{n}"}) for n in range(3)]
    own = Reading([said(OWN, batch) for batch in range(5)]).commits
    found = commits_of(OWN, reversed([*own, *by_spark]))
    assert found.newest is not None
    assert found.newest.batch == 4
    assert not found.is_newest


def history(seed: int) -> list[str | Restore]:
    """Commits as the rules leave them: a query goes on as long as no RESTORE took a batch of it out
    and none continues it, but for one batch that was under way."""
    rng = random.Random(seed)
    texts: list[str | Restore] = []
    batches = {OWN: 0, OTHER: 0, NEXT: 0}
    is_ended = False
    for _ in range(rng.randrange(1, 60)):
        match rng.choice(("own", "own", "own", "other", "other", "neither", "rare")):
            case "own":
                texts.append(said(OWN, batches[OWN]))
                batches[OWN] += 1
                if is_ended:
                    batches[OWN] = -1
            case "other":
                texts.append(said(OTHER, batches[OTHER]))
                batches[OTHER] += 1
            case "neither":
                texts.append("")
            case _ if texts and rng.random() < 0.3:
                texts.append(Restore(rng.randrange(len(texts)), None))
                is_ended = is_ended or bool(whole(OWN, Reading(texts).commits[::-1]).taken_out)
            case _ if batches[OWN] > 0 and rng.random() < 0.3:
                texts.append(said(NEXT, batches[NEXT], OWN))
                batches[NEXT] += 1
                is_ended = True
        if batches[OWN] < 0:
            break
    if batches[OWN] < 0:  # it is refused from now on; the others go on
        texts += [said(OTHER, batches[OTHER] + n) for n in range(rng.randrange(5))]
    return texts


def test_what_is_read_says_the_same_as_the_whole_history() -> None:
    less = 0
    for seed in range(1_000):
        table = Reading(history(seed))
        commits = table.commits[::-1]
        every, found = whole(OWN, commits), commits_of(OWN, table.newest())
        said_of = (found.newest, found.continued_by, found.newest_version)
        assert said_of == (every.newest, every.continued_by, every.newest_version), seed
        assert found.taken_out == every.taken_out, seed
        if found.newest is None:
            assert found.has_first_version == every.has_first_version, seed
        less += table.count < len(commits)
    assert less > 500


@pytest.fixture
def folder(spark: Any, tmp_path: Path) -> Path:
    """A table in which the query has written its batches, each with a file of no rows."""
    folder = tmp_path / "t"
    kept = {"delta.checkpointInterval": "100000"}
    delta_log.create_table(spark, f"file:{folder}", SCHEMA, (), kept, is_name=False)
    for batch in range(BATCHES):
        commit(folder, 1 + batch, OWN, batch)
    return folder


def commit(folder: Path, version: int, query_id: str, batch: int) -> None:
    """Write a commit as Delta does, without files of rows."""
    ends = {"t": {0: batch * 10}}
    said = CommitMetadata("q", query_id, batch, "c", {"t": "id"}, ends).text()
    info = {"timestamp": version, "operation": "WRITE", "userMetadata": said}
    actions = [
        {"commitInfo": info | {"operationParameters": {"mode": "Append"}}},
        {"txn": {"appId": query_id, "version": batch, "lastUpdated": version}},
    ]
    file = folder / "_delta_log" / f"{version:020d}.json"
    file.write_text("\n".join(map(json.dumps, actions)) + "\n")


def by_others(folder: Path, count: int) -> None:
    for batch in range(count):
        commit(folder, 1 + BATCHES + batch, "query-2", batch)


def sink(spark: Any, folder: Path) -> DeltaSink:
    made = DeltaSink(spark, find_target(spark, folder, path=True), SCHEMA)
    made.forget()
    return made


def held(batch: int | None, folder: Path, *, is_complete: bool, ends: Any = None) -> Held:
    return Held(
        f"the table {folder}", batch, ends, is_complete=is_complete, taken_out_by="RESTORE TABLE"
    )


@pytest.mark.spark
@pytest.mark.parametrize(
    ("since", "is_cleaned"),
    [(1, False), (999, False), (1_001, False), (3_000, False), (1, True), (3_000, True)],
)
def test_commits_of_others_since(spark: Any, folder: Path, since: int, is_cleaned: bool) -> None:
    by_others(folder, since)
    if is_cleaned:
        # A checkpoint of the log, and its files removed but for the two newest.
        delta_log.forget_table(spark, f"file:{folder}")
        delta_log._log(spark, f"file:{folder}").checkpoint()
        for file in sorted((folder / "_delta_log").glob("*.json"))[:-2]:
            file.unlink()
        for file in (folder / "_delta_log").glob(".*.json.crc"):
            file.unlink()
    found = sink(spark, folder).held(OWN)
    is_found = since <= 1 if is_cleaned else since < 1_000
    # Without the commit, Delta knows the number of the batch but not where it ends.
    ends = ENDS if is_found else None
    expected = held(BATCHES - 1, folder, is_complete=is_found, ends=ends)
    assert replace(found, forgets="") == expected
    assert bool(found.forgets) is not is_found


@pytest.mark.spark
def test_neither_a_job_nor_the_state_where_the_newest_commits_are_of_the_query(
    spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_others(folder, 5)
    made = sink(spark, folder)
    read: list[int] = []
    reading = Snapshot.newest_commits

    def noted(self: Snapshot, session: Any) -> Iterator[LoggedCommit]:
        for one in reading(self, session):
            read.append(one.version)
            yield one

    monkeypatch.setattr(Snapshot, "newest_commits", noted)
    monkeypatch.setattr(Snapshot, "transactions", None)
    monkeypatch.setattr(spark, "sql", None)
    assert made.held(OWN) == held(BATCHES - 1, folder, is_complete=True, ends=ENDS)
    assert read == [8, 7, 6, 5, 4, 3, 2]
    # What a start asks for besides is read already.
    assert len(list(islice(made.metadata(), 7))) == 7
    assert len(read) == 7


@pytest.mark.spark
def test_neither_a_job_nor_the_state_for_a_new_query_in_a_young_table(
    spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_others(folder, 5)
    made = sink(spark, folder)
    monkeypatch.setattr(Snapshot, "transactions", None)
    monkeypatch.setattr(spark, "sql", None)
    assert made.held("query-3") == held(None, folder, is_complete=True)
    assert made.forgets() == ""


@pytest.mark.spark
def test_a_restore_of_others(spark: Any, folder: Path) -> None:
    by_others(folder, 30)
    spark.sql(f"RESTORE TABLE delta.`{folder}` TO VERSION AS OF 2")
    found = sink(spark, folder).held(OWN)
    assert (found.batch, found.taken_out) == (1, (2,))
    assert found.ends == {"t": {0: 10}}


@pytest.mark.spark
def test_a_query_that_has_written_nothing(spark: Any, folder: Path) -> None:
    by_others(folder, 30)
    made = sink(spark, folder)
    assert made.held("query-3") == held(None, folder, is_complete=True)
    assert [len(list(made.metadata())), made.forgets()] == [34, ""]
