"""`ottla group`: a group with members is neither moved nor deleted, a wrong name is corrected."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.client.answers import groups, offsets
from tests.client.fake_cluster import FakeCluster

from ottla.cli import confirmation
from ottla.cli.app import carry_out
from ottla.cli.failures import Failed
from ottla.cli.group.existing import existing_groups
from ottla.client.admin.committed_offsets import OFFSET_COMMIT
from ottla.client.admin.groups import DELETE_GROUPS, Group, Member
from ottla.client.admin.offsets import LIST_OFFSETS

MEMBER = Member("m", None, "c", "/h", ())
LIVING = Group("living", "stable", "classic", "range", 2, False, (MEMBER,))
EMPTY = Group("empty", "empty", "classic", None, 2, False, ())
PARTITIONS = [("t", 0), ("u", 0)]


class Groups:
    """Groups living and empty, which have committed offset 5 of t-0, and of u-0 if they `read`
    several topics. The logs begin at 0 and end at 9.
    """

    def __init__(self, read: int = 1) -> None:
        self.committed = {
            name: dict.fromkeys(PARTITIONS[:read], 5) for name in ("living", "empty", "new")
        }
        del self.committed["new"][PARTITIONS[0]]
        first, end = dict.fromkeys(PARTITIONS, 0), dict.fromkeys(PARTITIONS, 9)
        known = groups({"living": LIVING, "empty": EMPTY}, self.committed)
        self.cluster = FakeCluster({LIST_OFFSETS: [offsets(first, end)], **known})
        self.cluster.leaders = dict.fromkeys(PARTITIONS, 1)
        self.client = self.cluster.client()

    def run(self, *words: str) -> int:
        return carry_out(["group", *words], SimpleNamespace(client=self.client))

    @property
    def changes(self) -> int:
        return len(self.cluster.requests(OFFSET_COMMIT) + self.cluster.requests(DELETE_GROUPS))


def test_a_group_without_members_is_moved() -> None:
    made = Groups()
    assert made.run("reset", "empty", "--to-earliest") == 0
    assert made.committed["empty"] == {("t", 0): 0}


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
    monkeypatch: pytest.MonkeyPatch, options: list[str], is_asked: bool
) -> None:
    made = Groups(read=2)
    questions: list[str] = []

    def refuse(question: str, *, what_else: str) -> bool:
        questions.append(question)
        return False

    monkeypatch.setattr(confirmation, "ask", refuse)
    assert made.run("reset", "empty", "--to-earliest", *options) == int(is_asked)
    is_moved = not is_asked and "--dry-run" not in options
    assert made.committed["empty"] == dict.fromkeys(PARTITIONS, 0 if is_moved else 5)
    assert bool(questions) == is_asked


def test_offsets_of_a_new_group_are_set_for_the_topics_that_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = Groups()
    made.run("reset", "new", "-t", "t", "--to-earliest")
    assert made.committed["new"] == {("t", 0): 0}
    assert "There was no group 'new': it was created." in capsys.readouterr().err
    made.run("reset", "new", "-t", "t", "--to-earliest", "--dry-run")
    assert "There was no group 'new': it would be created." in capsys.readouterr().err
    made.run("reset", "empty", "-t", "t", "--to-earliest")
    assert "There was no group" not in capsys.readouterr().err
    assert made.run("reset", "emty", "--to-earliest") == 1
    said = capsys.readouterr().err
    assert "there is no group 'emty'. Did you mean 'empty'" in said
    assert "To create it, give --topic" in said


def test_a_group_with_members_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    made, message = Groups(), "1 member is reading as group 'living' now"
    assert made.run("reset", "living", "--to-earliest") == 1
    assert message in capsys.readouterr().err
    assert made.run("delete", "empty", "living", "--yes") == 1
    assert message in capsys.readouterr().err
    assert made.changes == 0


def test_a_dry_run_shows_what_would_move_in_a_living_group(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = Groups()
    assert made.run("reset", "living", "--to-earliest", "--dry-run") == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].split() == ["t", "0", "5", "0"]
    assert "Nothing was changed" in printed.err
    assert made.changes == 0


def test_the_first_missing_group_is_named() -> None:
    client = Groups().client
    assert list(existing_groups(client, ["living", "living"])) == ["living"]
    with pytest.raises(Failed, match=r"there is no group 'livin'\. Did you mean 'living'"):
        existing_groups(client, ["empty", "livin"])


def test_groups_are_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    made = Groups()
    assert made.run("delete", "empty", "--yes") == 0
    assert made.run("list") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        *("Deleted", "group", "living")
    ]
