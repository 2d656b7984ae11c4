"""What the commits of a Delta table say of one query, read no further back than needed. Pure.

A table may have many commits, and each is a file. So they are read from the newest on, up to the
second commit of the query that is still in the table. What is older was compared before that second
one was written, or right after it: the start and each batch refuse to go on after a RESTORE that
took out commits of the query, and after a query that continues where this one ended. One batch may
be under way then, and a kill may come before it is compared: that is the newest commit. A query's
first batch has none of its own before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ottla.pipelines.target.commit_metadata import CommitMetadata, read_metadata
from ottla.pipelines.target.delta_table import Commit
from ottla.pipelines.target.restored import may_take_out_older, with_held

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def is_query_id(writer: str) -> bool:
    """Tell whether a writer (Delta's `txnAppId`) may be a query of Spark's, which are UUIDs."""
    return _UUID.fullmatch(writer) is not None


@dataclass(frozen=True, slots=True)
class CommitsOfQuery:
    """What the commits of a table say of a query.

    `newest`: its newest commit that is in the table and says where it ends. `is_newest`: and none
    of its commits is newer. `taken_out`: its batches that a RESTORE took out, the newest first.
    `continued_by`: a query that goes on where this one ended, empty for none. `has_first_version`:
    the table's version 0 was among them. `newest_version`: of all commits, -1 where there is none.
    `batches`: the numbers of its batches in the commits that were read. `older_taken_out`: a
    RESTORE may have taken out others, which are known no more. `is_before_shown`: these commits go
    back to the one before `newest`, or the query has none before it.
    """

    newest: CommitMetadata | None = None
    is_newest: bool = False
    taken_out: tuple[int, ...] = ()
    continued_by: str = ""
    has_first_version: bool = False
    newest_version: int = -1
    batches: frozenset[int] = frozenset()
    older_taken_out: bool = False
    is_before_shown: bool = True


def commits_of(query_id: str, commits: Iterable[Commit]) -> CommitsOfQuery:
    """Return what the commits say of a query; give the newest first, as an iterator that reads."""
    newest: CommitMetadata | None = None
    taken_out: list[int] = []
    batches: set[int] = set()
    continued_by, has_first_version, newest_version = "", False, -1
    is_newest, is_before_shown = True, False
    read: list[Commit] = []
    for commit, is_held in with_held(commits):
        read.append(commit)
        newest_version = max(newest_version, commit.version)
        has_first_version = has_first_version or commit.version == 0
        own = commit.batch[1] if commit.batch and commit.batch[0] == query_id else None
        if own is not None:
            batches.add(own)
        if not is_held:
            if own is not None:
                taken_out.append(own)
            continue
        said = read_metadata(commit.metadata)
        if said is not None and query_id in said.after:
            continued_by = continued_by or said.query_id
        if own is None:
            continue
        if newest is not None:
            is_before_shown = True
            break
        if said is None:  # Spark's own sink does not say where a batch ends
            is_newest = False
            continue
        newest = said
        if said.batch == 0:
            is_before_shown = True
            break
    return CommitsOfQuery(
        newest,
        newest is not None and is_newest,
        tuple(taken_out),
        continued_by,
        has_first_version,
        newest_version,
        frozenset(batches),
        may_take_out_older(read),
        is_before_shown or newest is None or has_first_version,
    )
