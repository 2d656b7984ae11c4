"""`ottla group`: a group with members is neither moved nor deleted, a wrong name is corrected."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli import confirmation
from ottla.cli.app import carry_out
from ottla.cli.failures import Failed
from ottla.cli.group import delete, description, moves, reset
from ottla.cli.group.description import existing_groups
from ottla.cli.group.moves import Move

LIVING, EMPTY = SimpleNamespace(members=["a"]), SimpleNamespace(members=[])


FOUND = {"living": LIVING, "empty": EMPTY}
CLUSTER = SimpleNamespace(
    connection=SimpleNamespace(
        groups=lambda: [SimpleNamespace(group_id=name) for name in sorted(FOUND)],
        admin=SimpleNamespace(delete_consumer_groups=None),
    )
)


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Groups living and empty exist; notes what is moved or deleted."""
    changes: list[str] = []

    def described(_: Any, names: list[str]) -> dict[str, Any]:
        return {name: FOUND[name] for name in names if name in FOUND}

    for module, name, stand_in in (
        (reset, "described_groups", described),
        (description, "described_groups", described),
        (reset, "committed_offsets", lambda *_: {("t", 0): 5}),
        (reset, "choose_partitions", lambda *_: [("t", 0)]),
        (reset, "plan", lambda *_: [Move("t", 0, 5, 0, "")]),
        (moves, "apply", lambda _, group, plan: changes.append(f"moved {group} {len(plan)}")),
        (
            delete,
            "delete_all",
            lambda _, kind, names, *__, **___: changes.append(f"deleted {names}"),
        ),
    ):
        monkeypatch.setattr(module, name, stand_in)
    return changes


def group(*words: str) -> int:
    return carry_out(["group", *words], CLUSTER)


def test_a_group_without_members_is_moved(changed: list[str]) -> None:
    assert group("reset", "empty", "--to-earliest") == 0
    assert changed == ["moved empty 1"]


@pytest.mark.parametrize(
    ("options", "is_asked"),
    [
        ([], True),
        (["-t", "t", "-t", "u"], False),
        (["--yes"], False),
        (["--dry-run"], False),
    ],
)
def test_it_asks_before_it_moves_several_topics(
    changed: list[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    is_asked: bool,
) -> None:
    both = [Move(name, 0, 5, 0, "") for name in "tu"]
    questions: list[str] = []

    def refuse(question: str, *, what_else: str) -> bool:
        questions.append(question)
        return False

    monkeypatch.setattr(reset, "plan", lambda *_: both)
    monkeypatch.setattr(confirmation, "ask", refuse)
    if is_asked:
        assert group("reset", "empty", "--to-earliest", *options) == 1
        assert changed == []
    else:
        assert group("reset", "empty", "--to-earliest", *options) == 0
        assert changed == ([] if "--dry-run" in options else ["moved empty 2"])
    assert bool(questions) == is_asked


def test_offsets_of_a_new_group_are_set_for_the_topics_that_are_named(
    changed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    group("reset", "new", "-t", "t", "--to-earliest")
    assert changed == ["moved new 1"]
    assert "There was no group 'new': it was created." in capsys.readouterr().err
    group("reset", "new", "-t", "t", "--to-earliest", "--dry-run")
    assert "There was no group 'new': it would be created." in capsys.readouterr().err
    group("reset", "empty", "-t", "t", "--to-earliest")
    assert "There was no group" not in capsys.readouterr().err
    assert group("reset", "emty", "--to-earliest") == 1
    said = capsys.readouterr().err
    assert "there is no group 'emty'. Did you mean 'empty'" in said
    assert "To create it, give --topic" in said


def test_a_group_with_members_is_left_alone(
    changed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    message = "1 member is reading as group 'living' now"
    assert group("reset", "living", "--to-earliest") == 1
    assert message in capsys.readouterr().err
    assert group("delete", "empty", "living", "--yes") == 1
    assert message in capsys.readouterr().err
    assert changed == []


def test_a_dry_run_shows_what_would_move_in_a_living_group(
    changed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert group("reset", "living", "--to-earliest", "--dry-run") == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].split() == ["t", "0", "5", "0"]
    assert "Nothing was changed" in printed.err
    assert changed == []


@pytest.mark.usefixtures("changed")
def test_the_first_missing_group_is_named() -> None:
    connection: Any = CLUSTER.connection
    assert list(existing_groups(connection, ["living", "living"])) == ["living"]
    with pytest.raises(Failed, match=r"there is no group 'livin'\. Did you mean 'living'"):
        existing_groups(connection, ["empty", "livin"])


def test_groups_are_deleted_together(changed: list[str]) -> None:
    assert group("delete", "empty", "--yes") == 0
    assert changed == ["deleted ['empty']"]
