"""`ottla group`: a group with members is neither moved nor deleted, a wrong name is corrected."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import typer

from ottla.cli import group as groups
from ottla.cli import group_members, group_reset
from ottla.cli.failures import Failed
from ottla.cli.group import delete, reset
from ottla.cli.group_members import existing_groups

LIVING, EMPTY = SimpleNamespace(members=["a"]), SimpleNamespace(members=[])


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Groups living and empty exist; notes what is moved or deleted."""
    found = {"living": LIVING, "empty": EMPTY}
    connection = SimpleNamespace(
        groups=lambda: [SimpleNamespace(group_id=name) for name in sorted(found)],
        admin=SimpleNamespace(delete_consumer_groups=None),
    )
    changes: list[str] = []
    move = {"topic": "t", "partition": 0, "before": 5, "after": 0, "note": None}
    for name, stand_in in {
        "connect": lambda *_: connection,
        "described_groups": lambda _, names: {n: found[n] for n in names if n in found},
        "committed_offsets": lambda *_: {("t", 0): SimpleNamespace(offset=5)},
        "choose_partitions": lambda *_: [("t", 0)],
        "plan": lambda *_: [move],
        "delete_all": lambda _, kind, names, *__, **___: changes.append(f"deleted {names}"),
    }.items():
        monkeypatch.setattr(groups, name, stand_in)
    moved = lambda _, name, moves: changes.append(f"moved {name} {len(moves)}")  # noqa: E731
    monkeypatch.setattr(group_reset, "apply", moved)
    stand_in = lambda _, names: {n: found[n] for n in names if n in found}  # noqa: E731
    monkeypatch.setattr(group_members, "described_groups", stand_in)
    return changes


def test_a_group_without_members_is_moved(changed: list[str]) -> None:
    reset("empty", to_earliest=True)
    assert changed == ["moved empty 1"]


@pytest.mark.parametrize(
    ("options", "is_asked"),
    [
        ({}, True),
        ({"topic": ["t", "u"]}, False),
        ({"yes": True}, False),
        ({"dry_run": True}, False),
    ],
)
def test_it_asks_before_it_moves_several_topics(
    changed: list[str],
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    is_asked: bool,
) -> None:
    moves = [
        {"topic": name, "partition": 0, "before": 5, "after": 0, "note": None} for name in "tu"
    ]
    questions: list[str] = []

    def refuse(question: str, *, what_else: str) -> bool:
        questions.append(question)
        return False

    monkeypatch.setattr(groups, "plan", lambda *_: moves)
    monkeypatch.setattr(group_reset, "ask", refuse)
    if is_asked:
        with pytest.raises(typer.Exit) as end:
            reset("empty", to_earliest=True, **options)
        assert end.value.exit_code == 1
        assert changed == []
    else:
        reset("empty", to_earliest=True, **options)
        assert changed == ([] if "dry_run" in options else ["moved empty 2"])
    assert bool(questions) == is_asked


def test_offsets_of_a_new_group_are_set_for_the_topics_that_are_named(
    changed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    reset("new", topic=["t"], to_earliest=True)
    assert changed == ["moved new 1"]
    assert "There was no group 'new': it was created." in capsys.readouterr().err
    reset("new", topic=["t"], to_earliest=True, dry_run=True)
    assert "There was no group 'new': it would be created." in capsys.readouterr().err
    reset("empty", topic=["t"], to_earliest=True)
    assert "There was no group" not in capsys.readouterr().err
    with pytest.raises(Failed, match=r"there is no group 'emty'\. Did you mean 'empty'") as failure:
        reset("emty", to_earliest=True)
    assert "To create it, give --topic" in (failure.value.hint or "")


def test_a_group_with_members_is_left_alone(changed: list[str]) -> None:
    message = "1 member is reading as group 'living' now"
    with pytest.raises(Failed, match=message):
        reset("living", to_earliest=True)
    with pytest.raises(Failed, match=message):
        delete(["empty", "living"], yes=True)
    assert changed == []


def test_a_dry_run_shows_what_would_move_in_a_living_group(
    changed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    reset("living", to_earliest=True, dry_run=True)
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].split() == ["t", "0", "5", "0"]
    assert "Nothing was changed" in printed.err
    assert changed == []


@pytest.mark.usefixtures("changed")
def test_the_first_missing_group_is_named() -> None:
    connection: Any = groups.connect("any")
    assert list(existing_groups(connection, ["living", "living"])) == ["living"]
    with pytest.raises(Failed, match=r"there is no group 'livin'\. Did you mean 'living'"):
        existing_groups(connection, ["empty", "livin"])


def test_groups_are_deleted_together(changed: list[str]) -> None:
    delete(["empty"], yes=True)
    assert changed == ["deleted ['empty']"]
