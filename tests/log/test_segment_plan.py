"""When retention removes which segment."""

from __future__ import annotations

import pytest

from ottla.log.config import LogConfig
from ottla.log.segment_plan import SegmentFacts, planned_segments


def facts(*segments: tuple[int, int | None]) -> list[SegmentFacts]:
    """With ten offsets each: size and largest timestamp."""
    return [
        SegmentFacts(10 * at, 10 * at + 10, size, largest)
        for at, (size, largest) in enumerate(segments)
    ]


def test_by_age_no_segment_goes_before_those_that_are_older() -> None:
    config = LogConfig(retention_ms=100)
    found = planned_segments(facts((5, 30), (5, 10), (5, 50)), config)
    assert [each.removed_ms for each in found] == [130, 130, 150]
    assert [each.is_active for each in found] == [False, False, True]
    assert [each.missing_bytes for each in found] == [None] * 3
    assert found[1][:4] == (10, 20, 5, 10)


def test_one_whose_time_is_not_known_holds_the_others() -> None:
    found = planned_segments(facts((5, 30), (5, None), (5, 50)), LogConfig(retention_ms=100))
    assert [each.removed_ms for each in found] == [130, None, None]


def test_by_size() -> None:
    config = LogConfig(retention_ms=-1, retention_bytes=12)
    found = planned_segments(facts((5, 1), (5, 1), (5, 1)), config)
    assert [each.missing_bytes for each in found] == [2, 7, 12]
    assert [each.removed_ms for each in found] == [None] * 3
    more = planned_segments(facts((5, 1), (15, 1), (5, 1)), config)
    assert [each.missing_bytes for each in more] == [0, 7, 12]


def test_an_empty_active_segment_stays() -> None:
    config = LogConfig(retention_ms=100, retention_bytes=12)
    found = planned_segments(facts((5, 1), (0, -1)), config)
    assert (found[0].removed_ms, found[0].missing_bytes) == (101, 12)
    assert (found[1].removed_ms, found[1].missing_bytes) == (None, None)


@pytest.mark.parametrize("config", [LogConfig(cleanup_delete=False, cleanup_compact=True)])
def test_compaction_removes_no_segment(config: LogConfig) -> None:
    found = planned_segments(facts((5, 1), (5, 1)), config)
    assert {(each.removed_ms, each.missing_bytes) for each in found} == {(None, None)}
    assert planned_segments([], config) == []
