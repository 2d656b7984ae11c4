"""When a transaction is committed."""

from __future__ import annotations

import pytest

from ottla.mirroring.commit_times import MAX_S, MIN_PAUSE_S, CommitTimes


def test_a_mirror_that_is_behind() -> None:
    times = CommitTimes(None)
    assert times.is_due(0.0)
    times.note_looked(10.0)
    assert not times.is_due(10.0 + MAX_S - 0.01)
    assert times.is_due(10.0 + MAX_S)
    times.note_begun(20.0)
    assert not times.is_due(20.0 + MAX_S - 0.01)


def test_a_mirror_that_has_caught_up() -> None:
    times = CommitTimes(None)
    times.note_looked(10.0)
    times.note_committed(10.1, partitions=4)
    assert not times.may_commit_early(10.11)
    assert times.wait_s(10.11, 0.05) == pytest.approx(MIN_PAUSE_S - 0.01)
    assert times.may_commit_early(10.1 + MIN_PAUSE_S)
    assert times.wait_s(10.2, 0.05) == 0.05, "it is not so near to the end that it commits"
    assert times.wait_s(10.0 + MAX_S, 0.05) == 0.0


def test_many_partitions_are_committed_less_often() -> None:
    times = CommitTimes(None)
    times.note_looked(10.0)
    times.note_committed(10.0, partitions=300)
    assert not times.may_commit_early(10.29)
    assert times.may_commit_early(10.31)
    assert times.wait_s(10.0, 0.05) == 0.05


def test_a_time_that_was_asked_for_is_kept() -> None:
    times = CommitTimes(2.0)
    times.note_looked(10.0)
    times.note_committed(10.0, partitions=1)
    assert not times.may_commit_early(11.9)
    assert not times.is_due(11.9)
    assert times.wait_s(11.98, 0.05) == pytest.approx(0.02)
    assert times.is_due(12.0)
