"""When retention may delete a record whose segment is not known: bounds that hold for any."""

import pytest

from ottla.journey.retention_bounds import bound_retention
from ottla.journey.retention_rules import Counts, RecordFacts, SegmentFacts, explain_retention
from ottla.journey.words.retention import format_rule
from ottla.log.config import LogConfig

DAY_MS = 24 * 3600 * 1000
WRITTEN_MS = 1_700_000_000_000


def test_by_time_not_before_its_batch_alone() -> None:
    config = LogConfig(retention_ms=DAY_MS)
    found = bound_retention(config, WRITTEN_MS, WRITTEN_MS + 5)
    assert (found.may_now, found.not_before_ms) == (False, WRITTEN_MS + DAY_MS)
    late = bound_retention(config, WRITTEN_MS, WRITTEN_MS + DAY_MS + 1)
    assert late.may_now
    (rule,) = late.rules
    assert "when all of its segment is" in format_rule(rule)


@pytest.mark.parametrize("newer_ms", [0, 7, 3 * DAY_MS])
@pytest.mark.parametrize("now_ms", [WRITTEN_MS, WRITTEN_MS + DAY_MS + 1, WRITTEN_MS + 9 * DAY_MS])
@pytest.mark.parametrize("after_bytes", [0, 10_000])
@pytest.mark.parametrize("limit_bytes", [-1, 5_000])
def test_what_the_segments_would_say_lies_within_the_bounds(
    newer_ms: int, now_ms: int, after_bytes: int, limit_bytes: int
) -> None:
    config = LogConfig(retention_ms=DAY_MS, retention_bytes=limit_bytes)
    segments = [
        SegmentFacts(0, 10, 4_000, WRITTEN_MS + newer_ms, False, None),
        SegmentFacts(10, 20, after_bytes, WRITTEN_MS + newer_ms, True, None),
    ]
    record = RecordFacts(5, WRITTEN_MS, Counts.BY_KEY, False, None, 0, None)
    true = explain_retention(config, segments, record, 20, now_ms)
    bound = bound_retention(config, WRITTEN_MS, now_ms)
    assert bound.may_now or not true.may_now
    assert bound.not_before_ms is not None
    assert true.not_before_ms is not None
    assert bound.not_before_ms <= true.not_before_ms


def test_a_batch_without_a_timestamp_has_no_bound() -> None:
    found = bound_retention(LogConfig(retention_ms=DAY_MS), -1, WRITTEN_MS)
    assert (found.may_now, found.not_before_ms) == (True, None)


def test_no_rule_keeps_it() -> None:
    found = bound_retention(LogConfig(retention_ms=-1), WRITTEN_MS, WRITTEN_MS)
    assert (found.may_now, found.not_before_ms) == (False, None)


def test_compaction_cannot_be_excluded() -> None:
    config = LogConfig(cleanup_delete=False, cleanup_compact=True)
    (rule,) = bound_retention(config, WRITTEN_MS, WRITTEN_MS).rules
    assert rule.setting == "cleanup.policy=compact"
    assert rule.may_now
    assert "were not searched" in format_rule(rule)
