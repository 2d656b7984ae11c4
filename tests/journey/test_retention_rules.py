"""When a record may go, and why not before: Kafka's rules as sentences."""

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.journey.retention_rules import (
    Counts,
    RecordFacts,
    Retention,
    Rule,
    SegmentFacts,
    explain_retention,
)
from ottla.journey.words.retention import format_delay, format_rule
from ottla.log.config import FOREVER_MS, LogConfig

DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS

CLOSED = SegmentFacts(0, 100, 1000, 90 * DAY_MS, False, None)
ACTIVE = SegmentFacts(100, 200, 500, 99 * DAY_MS, True, 105 * DAY_MS)


def delayed(rule: Rule) -> str:
    return format_delay(rule.delay) or ""


def record(offset: int = 50, **more: Any) -> RecordFacts:
    facts = RecordFacts(offset, 90 * DAY_MS, Counts.BY_KEY, False, None, FOREVER_MS, None)
    return facts._replace(**more)


def explain(
    config: LogConfig,
    asked: RecordFacts | None = None,
    segments: Sequence[SegmentFacts] = (CLOSED, ACTIVE),
    last_stable_offset: int = 200,
) -> Retention:
    return explain_retention(config, segments, asked or record(), last_stable_offset, NOW_MS)


def test_by_time_it_goes_when_its_segments_newest_record_is_old_enough() -> None:
    retention = explain(LogConfig(retention_ms=20 * DAY_MS))
    assert not retention.may_now
    assert retention.not_before_ms == 110 * DAY_MS
    (rule,) = retention.rules
    assert (
        format_rule(rule)
        == "20 days after its segment's newest record (1970-04-01 00:00:00.000 UTC)"
    )
    assert format_delay(rule.delay) is None


def test_once_that_is_over_the_next_check_may_remove_it() -> None:
    retention = explain(LogConfig(retention_ms=9 * DAY_MS))
    assert retention.may_now
    assert retention.not_before_ms == 99 * DAY_MS


def test_at_the_very_moment_it_stays() -> None:
    assert not explain(LogConfig(retention_ms=10 * DAY_MS)).may_now


def test_an_older_segment_that_is_younger_holds_it_back() -> None:
    young = CLOSED._replace(largest_timestamp_ms=98 * DAY_MS)
    second = SegmentFacts(100, 150, 10, 91 * DAY_MS, False, None)
    active = ACTIVE._replace(base_offset=150)
    retention = explain(LogConfig(retention_ms=5 * DAY_MS), record(120), (young, second, active))
    assert retention.not_before_ms == 103 * DAY_MS
    assert "an older segment's newest record" in format_rule(retention.rules[0])


def test_the_active_segment_moves_on_until_it_rolls() -> None:
    (rule,) = explain(LogConfig(retention_ms=20 * DAY_MS), record(150)).rules
    assert rule.not_before_ms == 119 * DAY_MS
    assert format_delay(rule.delay) == (
        "its segment is active: newer records delay this until it rolls, "
        "at 1.0 GiB (now 500 B) or at 1970-04-16 00:00:00.000 UTC"
    )


def test_by_size_it_goes_when_enough_comes_after_it() -> None:
    config = LogConfig(retention_ms=-1, retention_bytes=1200)
    retention = explain(config)
    assert not retention.may_now
    assert retention.not_before_ms is None
    assert (
        format_rule(retention.rules[0])
        == "the log keeps 1.2 KiB: its segment is deleted after 700 B more"
    )
    assert explain(LogConfig(retention_ms=-1, retention_bytes=500)).may_now


def test_with_no_limit_it_stays() -> None:
    retention = explain(LogConfig(retention_ms=-1))
    assert (retention.may_now, retention.not_before_ms) == (False, None)
    assert (
        format_rule(retention.rules[0]) == "kept until it is deleted manually: no retention is set"
    )


COMPACT = LogConfig(cleanup_delete=False, cleanup_compact=True)


def test_compaction_keeps_the_latest_of_a_key() -> None:
    (rule,) = explain(COMPACT).rules
    assert not rule.may_now
    assert format_rule(rule) == "the latest record with its key: compaction keeps it"
    (rule,) = explain(COMPACT, record(searched_to=80)).rules
    assert format_rule(rule) == "no later record with its key up to offset 79: compaction keeps it"


def test_compaction_removes_what_is_superseded() -> None:
    (rule,) = explain(COMPACT, record(superseded_by=80)).rules
    assert rule.may_now
    assert format_rule(rule) == (
        "superseded by offset 80: the cleaner may remove it once 50% of the log is dirty"
    )


def test_compaction_waits_for_its_lag() -> None:
    config = LogConfig(
        cleanup_delete=False, cleanup_compact=True, min_compaction_lag_ms=30 * DAY_MS
    )
    retention = explain(config, record(superseded_by=80))
    assert (retention.may_now, retention.not_before_ms) == (False, 120 * DAY_MS)


def test_compaction_leaves_the_active_segment_alone() -> None:
    (rule,) = explain(COMPACT, record(150, superseded_by=180)).rules
    assert not rule.may_now
    assert delayed(rule).startswith(
        "the segment of offset 180 is active: the cleaner skips it until it rolls"
    )


def test_the_cleaner_must_reach_the_later_record_too() -> None:
    closed = SegmentFacts(100, 200, 500, 99 * DAY_MS, False, None)
    active = SegmentFacts(200, 300, 500, 99 * DAY_MS, True, 105 * DAY_MS)
    asked = record(superseded_by=120)

    (waits,) = explain(COMPACT, asked).rules
    (stopped,) = explain(COMPACT, asked, (CLOSED, closed, active), 150).rules
    (now,) = explain(COMPACT, asked, (CLOSED, closed, active), 300).rules
    lag = LogConfig(cleanup_delete=False, cleanup_compact=True, min_compaction_lag_ms=9 * DAY_MS)
    (young,) = explain(lag, asked, (CLOSED, closed, active), 300).rules

    assert (waits.may_now, waits.not_before_ms) == (False, None)
    assert delayed(waits).startswith("the segment of offset 120 is active")
    assert (stopped.may_now, format_rule(stopped)) == (False, "superseded by offset 120")
    assert format_delay(stopped.delay) == "the cleaner stops at the last stable offset, 150"
    assert now.may_now
    assert (young.may_now, young.not_before_ms) == (False, 108 * DAY_MS)


def test_a_later_record_that_may_still_abort_does_not_supersede() -> None:
    (rule,) = explain(COMPACT, record(undecided=80, searched_to=80)).rules
    assert (
        format_rule(rule) == "the latest record with its key that is committed: compaction keeps it"
    )
    assert (
        format_delay(rule.delay) == "superseded once offset 80 is committed, which has its key, too"
    )


@pytest.mark.parametrize(
    ("counts", "may_now", "why"),
    [
        (Counts.ABORTED, True, "aborted: compaction removes it, whatever its key is"),
        (Counts.NO_KEY, True, "a record without a key: compaction removes it"),
        (Counts.OPEN, False, "its transaction is open: compaction stops before it"),
        (Counts.UNKNOWN, False, "not known: the marker of its transaction was not found"),
        (Counts.MARKER, False, "a transaction's marker, kept 1 day after the first cleaning"),
    ],
)
def test_what_does_not_count_by_its_key_is_never_called_the_latest(
    counts: Counts, may_now: bool, why: str
) -> None:
    (rule,) = explain(COMPACT, record(counts=counts)).rules
    assert format_rule(rule).startswith(why)
    assert rule.may_now is may_now


def test_a_marker_goes_at_its_horizon() -> None:
    asked = record(counts=Counts.MARKER, delete_horizon_ms=99 * DAY_MS)
    assert explain(COMPACT, asked).may_now
    assert not explain(COMPACT, asked._replace(delete_horizon_ms=101 * DAY_MS)).may_now


@pytest.mark.parametrize(
    ("horizon_ms", "may_now"), [(None, False), (99 * DAY_MS, True), (101 * DAY_MS, False)]
)
def test_a_tombstone_goes_at_its_horizon(horizon_ms: int | None, may_now: bool) -> None:
    asked = record(is_tombstone=True, delete_horizon_ms=horizon_ms)
    retention = explain(COMPACT, asked)
    assert retention.may_now == may_now
    assert retention.not_before_ms == horizon_ms
    assert "a tombstone, kept 1 day after the first cleaning" in format_rule(retention.rules[0])


def test_both_policies_are_shown_and_the_earlier_time_counts() -> None:
    config = LogConfig(
        cleanup_compact=True,
        retention_ms=20 * DAY_MS,
        retention_bytes=10_000,
        min_compaction_lag_ms=15 * DAY_MS,
    )
    retention = explain(config, record(superseded_by=80))
    assert [rule.setting for rule in retention.rules] == [
        "retention.ms",
        "retention.bytes",
        "cleanup.policy=compact",
    ]
    assert retention.not_before_ms == 105 * DAY_MS


def test_the_lag_counts_from_the_segments_newest_record() -> None:
    """Only whole segments are cleaned."""
    config = LogConfig(
        cleanup_delete=False, cleanup_compact=True, min_compaction_lag_ms=30 * DAY_MS
    )
    retention = explain(config, record(timestamp_ms=50 * DAY_MS, superseded_by=80))
    assert (retention.may_now, retention.not_before_ms) == (False, 120 * DAY_MS)


def test_a_tombstone_that_is_superseded_goes_with_whichever_comes_first() -> None:
    asked = record(is_tombstone=True, superseded_by=180)
    (waits,) = explain(COMPACT, asked).rules
    assert (waits.may_now, format_rule(waits)) == (False, "superseded by offset 180")
    assert explain(COMPACT, asked._replace(delete_horizon_ms=99 * DAY_MS)).may_now
    later = asked._replace(superseded_by=80, delete_horizon_ms=101 * DAY_MS)
    (now,) = explain(COMPACT, later).rules
    assert now.may_now
    assert format_rule(now).startswith("superseded by offset 80")
