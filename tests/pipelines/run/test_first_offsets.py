"""Where a query with a new checkpoint starts, by what the table says of each topic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, StructType

from ottla.pipelines.checkpoint.identity import Identity
from ottla.pipelines.checkpoint.next_batch import Held
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import TopicState
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.run.first_offsets import (
    Start,
    check_created_again,
    check_first,
    check_new,
    first_offsets,
)
from ottla.pipelines.source.source import Source
from ottla.pipelines.target.commit_metadata import CommitMetadata
from ottla.pipelines.target.keyed_table import KeyedTable
from ottla.pipelines.target.port import Capabilities

KAFKA = read_settings("b:9092")
ROW = StructType().add("id", "long")
STATE = TopicState("t", "id-t", {0: 2, 1: 0}, {0: 10, 1: 5})
LAST = CommitMetadata("q", "query-1", 7, "cluster", {"t": "id-t"}, {"t": {0: 8, 1: 5}})


class Table:
    """A table with these commits; `check_start` is noted."""

    name = short_name = "flights"
    capabilities = Capabilities()

    def __init__(
        self, *commits: CommitMetadata, keyed: KeyedTable | None = None, forgets: str = ""
    ) -> None:
        self.commits = commits
        self.rejected: tuple[CommitMetadata, ...] = ()
        self.forgets = lambda: forgets
        self.keyed = keyed
        self.checked: list[tuple[str, bool]] = []

    def newest_commit(self) -> str:
        return "7"

    def knows_since(self, commit: str) -> bool:
        return commit == "7"

    def held(self, query_id: str) -> Held:
        return Held("the table flights")

    def metadata(self) -> list[str]:
        return [commit.text() for commit in self.commits]

    def rejected_metadata(self) -> list[str]:
        return [commit.text() for commit in self.rejected]

    def check_start(self, topic: str, *, continues: bool) -> None:
        self.checked.append((topic, continues))


def source(starting: Any = "earliest", name: str = "t", **how: Any) -> Source:
    return Source(name, KAFKA, {"value": how.pop("value", BinaryType())}, starting, **how)


def start(
    table: Table,
    *sources: Source,
    on_lost: str = "stop",
    cluster: str = "cluster",
    state: TopicState = STATE,
) -> Start:
    sink: Any = table
    return first_offsets(on_lost, sink, sources, cluster, {"t": state, "u": state})


@pytest.mark.parametrize(
    ("starting", "offsets"),
    [
        ("earliest", {0: 2, 1: 0}),
        ("latest", {0: 10, 1: 5}),
        ({0: 10, 1: 3}, {0: 10, 1: 3}),
    ],
)
def test_a_table_that_does_not_have_the_topic(starting: Any, offsets: dict[int, int]) -> None:
    table = Table()
    assert start(table, source(starting)) == Start({"t": offsets})
    assert table.checked == [("t", False)]


@pytest.mark.parametrize("starting", ["earliest", "latest", "table"])
def test_a_table_that_may_have_had_the_topic_needs_explicit_offsets(starting: str) -> None:
    table = Table(forgets="only its latest 2 commits are known")
    with pytest.raises(PipelineError, match=r"'t' is not known: only its latest 2 commits are kno"):
        start(table, source(starting))
    assert start(table, source({0: 10, 1: 3})) == Start({"t": {0: 10, 1: 3}})
    # Of the topic that a commit names all is known.
    assert start(Table(LAST, forgets="some"), source("table")).offsets == {"t": {0: 8, 1: 5}}


def test_rejected_rows_of_records_that_are_read_again_are_said() -> None:
    """RESTORE TABLE takes batches out of a table, and leaves their rejected rows beside it."""
    table = Table(LAST)
    for beside in ((), (LAST,), (replace(LAST, offsets={"t": {0: 3, 1: 5}}),)):
        table.rejected = beside
        assert len(start(table, source("table")).notices) == 1
    table.rejected = (replace(LAST, batch=9, offsets={"t": {0: 10, 1: 5}}),)
    _, said = start(table, source("table")).notices
    assert said == (
        "The records of topic 't' from offset 8 in partition 0 on are read again, up to offset 10 "
        "in partition 0: those that were rejected are in flights_rejected already, and will be "
        "there twice. Where that matters, delete them there"
    )
    table.rejected = (replace(table.rejected[0], topic_ids={"t": "another"}),)
    assert len(start(table, source("table")).notices) == 1


def test_a_query_without_topics_asks_the_table_once() -> None:
    table = Table(LAST)
    assert start(table) == Start()
    assert table.checked == [("", False)]


@pytest.mark.parametrize("starting", ["earliest", "latest"])
def test_a_topic_that_the_table_has_needs_a_word_from_the_caller(starting: str) -> None:
    with pytest.raises(PipelineError, match=r"flights holds topic 't' already.* starting='table'"):
        start(Table(LAST), source(starting))


def test_which_of_two_queries_is_to_be_continued_needs_explicit_offsets() -> None:
    other = replace(LAST, query="r", query_id="query-2", batch=3, offsets={"t": {0: 4, 1: 5}})
    table = Table(LAST, other, replace(LAST, batch=6))
    said = (
        r"'t' to the table flights at the same time: q \(query-1\) up to offset 8 in partition 0, "
        r"offset 5 .*, and r \(query-2\) up to offset 4 .* explicit offsets"
    )
    with pytest.raises(PipelineError, match=said):
        start(table, source("table"))
    assert start(table, source({0: 4, 1: 5})).offsets == {"t": {0: 4, 1: 5}}


def test_explicit_offsets_need_none() -> None:
    table = Table(LAST)
    assert start(table, source({0: 2, 1: 0})).offsets == {"t": {0: 2, 1: 0}}
    assert table.checked == []


def test_it_continues_where_the_table_ends() -> None:
    earlier = CommitMetadata("q", "query-1", 6, "cluster", {"t": "id-t"}, {"t": {0: 3, 1: 1}})
    found = start(Table(LAST, earlier), source("table"))
    assert (found.offsets, found.due) == ({"t": {0: 8, 1: 5}}, [])
    (notice,) = found.notices
    assert notice == (
        "Topic 't' continues where the table flights ends: at batch 7 of the query q (query-1)"
    )


def test_each_topic_has_its_own_start() -> None:
    table = Table(LAST)
    found = start(table, source("table"), source("latest", "u"))
    assert found.offsets == {"t": {0: 8, 1: 5}, "u": {0: 10, 1: 5}}
    assert table.checked == [("u", False)]


def test_a_table_without_a_commit_of_the_topic_begins_at_the_beginning() -> None:
    table = Table()
    found = start(table, source("table"))
    assert found.offsets == {"t": {0: 2, 1: 0}}
    assert "it is read from its beginning" in found.notices[0]
    assert table.checked == [("t", True)]


def test_new_partitions_are_refused_where_a_deleted_key_could_come_back() -> None:
    state = TopicState("t", "id-t", {0: 2, 1: 0, 2: 0}, {0: 10, 1: 5, 2: 1})
    deletes = Table(LAST, keyed=KeyedTable(("id",), ("id",), has_tombstones=True))
    with pytest.raises(PipelineError, match="has got the partition 2 since the last batch"):
        start(deletes, source("table"), state=state)
    lost = TopicState("t", "id-t", {0: 9, 1: 0, 2: 0}, {0: 10, 1: 5, 2: 1})
    with pytest.raises(PipelineError, match="has got the partition 2 since the last batch"):
        start(deletes, source("table"), on_lost="skip", state=lost)
    # The caller says it.
    offsets = {0: 8, 1: 5, 2: 0}
    assert start(deletes, source(offsets), state=state).offsets == {"t": offsets}
    keyed = Table(LAST, keyed=KeyedTable(("id",), ("id",)))
    assert start(keyed, source("table"), state=state).offsets == {"t": {0: 8, 1: 5}}


def test_a_table_of_another_cluster() -> None:
    with pytest.raises(PipelineError, match=r"of the cluster cluster, and .* leads to elsewhere"):
        start(Table(LAST), source("table"), cluster="elsewhere")


@pytest.mark.parametrize(
    ("state", "said", "offsets"),
    [
        (
            TopicState("t", "id-t", {0: 9, 1: 0}, {0: 10, 1: 5}),
            "1 records of topic 't' that were not delivered yet are gone",
            {0: 9, 1: 5},
        ),
        (
            TopicState("t", "new", {0: 0, 1: 0}, {0: 4, 1: 0}),
            "Topic 't' was deleted and created again",
            {0: 0, 1: 0},
        ),
    ],
)
def test_lost_records_need_a_word_from_the_caller(
    state: TopicState, said: str, offsets: dict[int, int]
) -> None:
    with pytest.raises(PipelineError, match=said) as stopped:
        start(Table(LAST), source("table"), state=state)
    assert "on_lost='skip'" in str(stopped.value)
    assert "checkpoint" not in str(stopped.value), "the table has no checkpoint here"
    found = start(Table(LAST), source("table"), state=state, on_lost="skip")
    assert found.offsets == {"t": offsets}
    assert found.notices[0].endswith("; on_lost='skip' continues without them")


@pytest.mark.parametrize(
    ("keyed", "offsets", "is_refused"),
    [
        (KeyedTable(("id",), ("id",)), {0: 7, 1: 5}, True),
        (KeyedTable(("id",), ("id",)), {0: 8, 1: 5}, False),
        (KeyedTable(("id",), ("id",), order_by="at"), {0: 2, 1: 0}, False),
        (None, {0: 2, 1: 0}, False),
    ],
)
def test_older_records_must_not_replace_newer_rows(
    keyed: KeyedTable | None, offsets: dict[int, int], is_refused: bool
) -> None:
    table = Table(LAST, keyed=keyed)
    if not is_refused:
        assert start(table, source(offsets)).offsets == {"t": offsets}
        return
    said = "partition 0 of 't' up to offset 8, and starting= gives 7: older records would replace"
    with pytest.raises(PipelineError, match=said):
        start(table, source(offsets))


def test_a_topic_that_was_made_again_has_no_older_records() -> None:
    table = Table(LAST, keyed=KeyedTable(("id",), ("id",)))
    again = TopicState("t", "new", {0: 0, 1: 0}, {0: 4, 1: 5})
    assert start(table, source({0: 0, 1: 0}), state=again).offsets == {"t": {0: 0, 1: 0}}


@pytest.mark.parametrize(
    ("how", "is_due"),
    [({"value": ROW}, True), ({"value": ROW, "rejects": "keep"}, False), ({}, False)],
)
def test_rejected_rows_of_the_tables_last_batches_may_be_missing(
    how: dict[str, Any], is_due: bool
) -> None:
    """A kill between the commit of a batch and that of its rejected rows leaves such an end."""
    commit = replace(LAST, rejects_from={"t": {0: 4, 1: 5}})
    found = start(Table(commit), source("table", **how))
    if not is_due:
        assert found.due == []
        return
    (due,) = found.due
    assert (due.query_id, due.batch, due.once, due.metadata) == ("query-1", 7, True, commit.text())
    (part,) = due.parts
    assert (part.topic, part.topic_id) == ("t", "id-t")
    assert (part.first, part.end) == ({0: 4, 1: 5}, {0: 8, 1: 5})


def test_another_query_that_writes_during_the_first_batch_is_noticed() -> None:
    mine = replace(LAST, query_id="new", batch=0)
    newest = {"t": ("query-1", 7)}
    table: Any = Table(mine, LAST)
    check_first(table, "new", ["t"], newest)
    table = Table(replace(LAST, batch=8), mine, LAST)
    with pytest.raises(PipelineError, match="Another query has written topic 't'"):
        check_first(table, "new", ["t"], newest)


def test_a_new_query_asks_whether_all_commits_since_it_began_are_known() -> None:
    table: Any = Table()
    assert start(table, source()).since == "7"
    check_new(table, "new", ["t"], {}, "7")
    check_new(table, "new", ["t"], {}, None)
    with pytest.raises(PipelineError, match=r"written topic 't' .* since this one began is not kn"):
        check_new(table, "new", ["t"], {}, "6")
    with pytest.raises(PipelineError, match=r"is not known: .* and rows may be there twice"):
        check_first(table, "new", ["t"], {}, "6")
    # Of the topic that a commit names all is known.
    table = Table(LAST)
    check_new(table, "new", ["t"], {"t": ("query-1", 7)}, "6")


def test_a_topic_created_again_that_the_table_has_already_is_refused() -> None:
    table: Any = Table(LAST)
    known = Identity("cluster", {"t": "id-t"}, "", "", "")
    check_created_again(table, known, {"t": STATE})
    with pytest.raises(PipelineError, match="holds topic 't' already"):
        check_created_again(table, replace(known, topics={"t": "former"}), {"t": STATE})
