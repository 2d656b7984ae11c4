"""What a table's snapshots say, which are in memory here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.iceberg.jvm import MARK, LoadedTable
from ottla.pipelines.sinks.iceberg.table import branch_of, check_published


class Snapshot:
    """A snapshot as Iceberg's API shows it, whose names are Java's."""

    def __init__(self, number: int, parent: int | None, **summary: str) -> None:
        self.number, self.parent = number, parent
        self.words = {name.replace("_", "-"): value for name, value in summary.items()}
        if "mark" in self.words:
            self.words[MARK] = self.words.pop("mark")

    def snapshotId(self) -> int:  # noqa: N802
        return self.number

    def sequenceNumber(self) -> int:  # noqa: N802
        return self.number

    def parentId(self) -> int | None:  # noqa: N802
        return self.parent

    def timestampMillis(self) -> int:  # noqa: N802
        return self.number

    def summary(self) -> dict[str, str]:
        return self.words


class Java:
    """A table whose latest snapshot is the last one."""

    is_sorted = False

    def __init__(self, *snapshots: Snapshot, **properties: str) -> None:
        self.all = snapshots
        self.words = {name.replace("_", "."): value for name, value in properties.items()}

    def currentSnapshot(self) -> Snapshot:  # noqa: N802
        return self.all[-1]

    def snapshot(self, number: int) -> Snapshot | None:
        return next((one for one in self.all if one.number == number), None)

    def snapshots(self) -> list[Snapshot]:
        return list(self.all)

    def properties(self) -> dict[str, str]:
        return self.words

    def sortOrder(self) -> Any:  # noqa: N802
        return SimpleNamespace(isSorted=lambda: self.is_sorted)


class Table(LoadedTable):
    def __init__(self, java: Java) -> None:
        self._table: Any = java


def test_a_cherry_pick_has_the_batch_of_the_snapshot_that_it_brings() -> None:
    """A rollback took batch 1 out, and somebody has brought it back."""
    table = Table(
        Java(
            Snapshot(1, None, mark="batch 0"),
            Snapshot(2, 1, mark="batch 1"),
            Snapshot(3, 1),
            Snapshot(4, 3, source_snapshot_id="2"),
        )
    )
    there = list(table.ancestors())
    assert [one.metadata for one in there] == ["batch 1", "", "batch 0"]
    assert table.set_aside(there) == []


def test_what_a_cherry_pick_has_brought_from_an_expired_snapshot_is_not_known() -> None:
    table = Table(Java(Snapshot(3, None), Snapshot(4, 3, source_snapshot_id="2")))
    assert [one.metadata for one in table.ancestors()] == ["", ""]


def test_a_session_whose_writes_are_published_later_is_refused() -> None:
    class Session:
        def __init__(self, **settings: str) -> None:
            self.settings = {name.replace("_", "."): value for name, value in settings.items()}
            self.conf = self

        def get(self, name: str, default: None) -> str | None:
            return self.settings.get(name, default)

    plain, later = Table(Java()), Table(Java(write_wap_enabled="true"))
    for settings in ({"spark_wap_branch": "audit"}, {"spark_wap_id": "7"}):
        session: Any = Session(**settings)
        check_published(session, "lake.db.t", plain)
        with pytest.raises(PipelineError, match=r"and the table lake\.db\.t write\.wap\.enabled"):
            check_published(session, "lake.db.t", later)
    nothing: Any = Session()
    check_published(nothing, "lake.db.t", later)


def test_a_name_may_mean_a_branch() -> None:
    assert branch_of("lake.db.t.branch_dev") == ("lake.db.t", "branch_dev")
    assert branch_of("lake.db.tag_1") == ("lake.db", "tag_1")
    for name in ("lake.db.t", "lake.branch_dev", "lake.db.branches"):
        assert branch_of(name) is None


def test_a_table_that_is_sorted_over_all_tasks_is_sampled() -> None:
    for is_sorted, mode, of_session, is_sampled in (
        (False, None, None, False),
        (True, None, None, True),
        (True, "hash", None, False),
        (False, "range", None, True),
        (False, "range", "none", False),
        (False, None, "range", True),
    ):
        java = Java(Snapshot(1, None), **({"write_distribution-mode": mode} if mode else {}))
        java.is_sorted = is_sorted
        conf = SimpleNamespace(get=lambda *_, of_session=of_session: of_session)
        session: Any = SimpleNamespace(conf=conf)
        assert Table(java).is_sampled(session) is is_sampled
