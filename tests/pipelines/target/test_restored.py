"""Which commits are in a table after it was restored."""

from dataclasses import dataclass

import pytest

from ottla.pipelines.target.restored import Restore, may_take_out_older, still_held


@dataclass
class Version:
    """A version of a table, committed at its own number of seconds."""

    version: int
    restore: Restore | None = None

    @property
    def time_s(self) -> float:
        return float(self.version)


def held(*restores: tuple[int, Restore], newest: int = 6) -> list[int]:
    """The versions that are in a table of these restores, the newest first."""
    known = dict(restores)
    commits = [Version(number, known.get(number)) for number in range(newest, -1, -1)]
    return [commit.version for commit in still_held(commits)]


@pytest.mark.parametrize(
    ("restores", "found"),
    [
        ((), [6, 5, 4, 3, 2, 1, 0]),
        (((4, Restore(1, None)),), [6, 5, 4, 1, 0]),
        (((4, Restore(None, 2.5)),), [6, 5, 4, 2, 1, 0]),
        (((6, Restore(5, None)), (4, Restore(1, None))), [6, 5, 4, 1, 0]),
        # The second takes the first back.
        (((6, Restore(3, None)), (4, Restore(1, None))), [6, 3, 2, 1, 0]),
        (((4, Restore(None, None)),), [6, 5, 4]),
    ],
)
def test_a_restore_takes_the_commits_after_its_target_out(
    restores: tuple[tuple[int, Restore], ...], found: list[int]
) -> None:
    assert held(*restores) == found


@pytest.mark.parametrize(
    ("restore", "oldest", "may"),
    [
        (Restore(1, None), 4, True),
        (Restore(1, None), 3, True),
        (Restore(1, None), 2, False),
        (Restore(1, None), 1, False),
        (Restore(1, None), 0, False),
        (Restore(None, 1.5), 3, True),
        (Restore(None, 3.5), 3, False),
        (Restore(None, None), 3, True),
        (Restore(None, None), 0, False),
    ],
)
def test_a_restore_may_take_out_what_is_not_known(restore: Restore, oldest: int, may: bool) -> None:
    commits = [
        Version(number, restore if number == 4 else None) for number in range(6, oldest - 1, -1)
    ]
    assert may_take_out_older(commits) is may
    assert not may_take_out_older([Version(6), Version(5)])
    assert not may_take_out_older([])
