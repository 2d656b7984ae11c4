"""A topic's document and its table: leaders, epochs, and what is wrong."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.rows import document as document_of
from ottla.cli.topic.description import (
    PartitionDescription,
    TopicDescription,
    described_partition,
    mark,
    troubles,
)
from ottla.cli.topic.metadata import Epoch


def node(number: int, rack: str | None = None) -> Any:
    return SimpleNamespace(id=number, rack=rack)


def partition(index: int, leader: int | None, isr: tuple[int, ...] = (1, 2)) -> Any:
    return SimpleNamespace(
        id=index,
        leader=None if leader is None else node(leader),
        replicas=[node(1), node(2)],
        isr=[node(each) for each in isr],
    )


def described(
    *args: Any, epoch: Epoch | None = None, why: str | None = None
) -> PartitionDescription:
    return described_partition(partition(*args), epoch, 3, 9 if why is None else None, why)


def test_a_healthy_partition() -> None:
    assert document_of(described(0, 1, epoch=Epoch(5, ()))) == {
        "partition": 0,
        "leader": 1,
        "leader_epoch": 5,
        "replicas": [1, 2],
        "racks": [None, None],
        "in_sync": [1, 2],
        "offline_replicas": [],
        "state": "ok",
        "start_offset": 3,
        "end_offset": 9,
        "offsets_error": None,
    }


def test_a_partition_whose_leader_is_silent() -> None:
    told = described(0, 1, epoch=Epoch(5, ()), why="it says nothing")
    assert (told.state, told.leader) == ("ok", 1)
    assert (told.start_offset, told.end_offset) == (None, None)
    assert told.offsets_error == mark(told) == "it says nothing"
    short = described(0, 1, (1,), epoch=Epoch(6, (2,)), why="it says nothing")
    assert mark(short) == "under-replicated, down: 2, it says nothing"


@pytest.mark.parametrize(
    ("leader", "isr", "epoch", "state", "said"),
    [
        (1, (1, 2), None, "ok", ""),
        (1, (1,), None, "under_replicated", "under-replicated"),
        (1, (1,), Epoch(6, (2,)), "under_replicated", "under-replicated, down: 2"),
        (None, (1,), Epoch(7, (1,)), "offline", "OFFLINE, down: 1"),
        (-1, (1, 2), None, "offline", "OFFLINE"),
    ],
)
def test_problems_are_marked(
    leader: int | None, isr: tuple[int, ...], epoch, state: str, said: str
) -> None:
    told = described(0, leader, isr, epoch=epoch)
    assert told.state == state
    assert mark(told) == said


def test_the_title_counts_problems(capsys: pytest.CaptureFixture[str]) -> None:
    partitions = [described(0, 1), described(1, 1, (1,)), described(2, None, (1,))]
    assert troubles(partitions) == ", 1 offline, 1 under-replicated"
    assert troubles([described(0, 1), described(1, 1, why="?")]) == ", 1 without offsets"
    TopicDescription("t", "id", False, partitions, {"retention.ms": "5"}).show()
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "t: 3 partitions, 1 offline, 1 under-replicated"
    assert shown[1].split() == [
        *("partition", "leader", "epoch", "replicas", "in", "sync"),
        *("start", "offset", "end", "offset", "state"),
    ]
    assert shown[-1] == "retention.ms=5"


def test_without_problems_there_is_no_problem_column(capsys: pytest.CaptureFixture[str]) -> None:
    TopicDescription("t", "id", False, [described(0, 1)], {}).show()
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "t: 1 partition"
    assert "state" not in shown[1]


def test_racks_are_shown_if_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    one = partition(0, 1)
    one.replicas = [node(1, "east"), node(2)]
    told = described_partition(one, None, None, None, None)
    assert told.racks == ["east", None]
    TopicDescription("t", "id", False, [told], {}).show()
    assert capsys.readouterr().out.splitlines()[2].split() == [
        *("0", "1", "-", "1", "2", "east", "-", "1", "2", "-", "-"),
    ]


@pytest.mark.parametrize("columns", [30, 60, 120])
def test_nothing_is_lost_on_a_narrow_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    told = described(0, 1, (1,), epoch=Epoch(6, (2,)))
    TopicDescription("t", "id", False, [told], {}).show()
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= columns
    assert "under-replicated,down:2" in "".join(shown.split())


def test_ten_thousand_partitions_are_ten_thousand_lines(capsys: pytest.CaptureFixture[str]) -> None:
    partitions = [described(index, 1) for index in range(10_000)]
    TopicDescription("t", "id", False, partitions, {}).show()
    assert len(capsys.readouterr().out.splitlines()) == 10_002
