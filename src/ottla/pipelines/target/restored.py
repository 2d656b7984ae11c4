"""Which commits of a Delta table are still in it.

RESTORE TABLE is a commit of its own: the table has the rows of an earlier version from there on,
and the commits in between are out of it, though its history shows them. The last batch of each
writer (`txnVersion`) stays as it was, so Delta would not write the lost batches again. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

RESTORE: Final = "RESTORE"


@dataclass(frozen=True, slots=True)
class Restore:
    """What a RESTORE says: the version, or the time (in seconds) up to which commits are kept.

    Both are None where the history does not say it in a form that is known.
    """

    version: int | None
    time_s: float | None


class OfTable(Protocol):
    """A version of a table, as its history has it."""

    @property
    def version(self) -> int: ...
    @property
    def time_s(self) -> float: ...
    @property
    def restore(self) -> Restore | None: ...


T = TypeVar("T", bound=OfTable)


def still_held(commits: Iterable[T]) -> Iterator[T]:
    """Return the commits whose rows are in the table; give the newest first."""
    return (commit for commit, is_held in with_held(commits) if is_held)


def with_held(commits: Iterable[T]) -> Iterator[tuple[T, bool]]:
    """Return each commit, and whether its rows are in the table; give the newest first.

    A restore without a known target keeps none of the commits before it: who continues there is
    then asked, and loses nothing in silence.
    """
    target = Restore(None, None)
    is_restored = False
    for commit in commits:
        if is_restored and not _keeps(target, commit):
            yield commit, False
            continue
        is_restored = commit.restore is not None
        if commit.restore is not None:
            target = commit.restore
        yield commit, True


def may_take_out_older(commits: Iterable[OfTable]) -> bool:
    """Tell whether a restore may have taken out commits that are older than all of these, and are
    known no more; give the newest first."""
    last: OfTable | None = None
    target: Restore | None = None  # of the restore whose end is not reached yet
    for commit, is_held in with_held(commits):
        last = commit
        if is_held:
            target = commit.restore
    if last is None or target is None or last.version == 0:
        return False
    if target.version is not None:
        return target.version < last.version - 1
    return target.time_s is None or target.time_s < last.time_s


def _keeps(target: Restore, commit: OfTable) -> bool:
    if target.version is not None:
        return commit.version <= target.version
    return target.time_s is not None and commit.time_s <= target.time_s
