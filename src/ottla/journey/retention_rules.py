"""When retention may delete a record, and what keeps it until then. Pure; the rules are Kafka's.

Retention deletes whole segments, the oldest first. By time: when the newest record of a segment is
older than `retention.ms`. By size: when the log without the segment still holds `retention.bytes`.
Compaction removes a record when a later one has its key, unless that one was aborted or its
transaction is open. It removes aborted records and records without a key, too, and, once they were
cleaned first, `delete.retention.ms` later a tombstone (a record without a value) and the marker of
a transaction without records. It never looks at or beyond the active segment, the last stable
offset, or a segment that is younger than `min.compaction.lag.ms`, so the later record must lie
before all of them (LogCleaner, LogCleanerManager.cleanableOffsets). An administrator may delete
records at any time (DeleteRecords).
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from ottla.log.config import FOREVER_MS, LogConfig
from ottla.log.expiry import cleanable_ms, expires_ms, missing_bytes

Statement = dict[str, Any]
"""What is said: its `kind`, and its values. `words.retention` has the sentences."""


class SegmentFacts(NamedTuple):
    """What retention depends on: sizes in bytes, times in ms (-1: no record has one)."""

    base_offset: int
    next_offset: int
    size_bytes: int
    largest_timestamp_ms: int
    is_active: bool
    rolls_ms: int | None
    """The time after which the next append rolls the active segment; None for closed segments."""


class Counts(Enum):
    """Whether compaction looks at the record's key, and what it does otherwise."""

    BY_KEY = "by its key"
    NO_KEY = "no key"
    ABORTED = "aborted"
    OPEN = "open"
    UNKNOWN = "unknown"
    """The search for the marker of its transaction ended early."""
    MARKER = "marker"


class RecordFacts(NamedTuple):
    """The record. `superseded_by`: the offset of a later record with its key that counts;
    `searched_to`: the search for one ended here. `undecided`: that of one whose transaction, or
    replication, may still fail.
    """

    offset: int
    timestamp_ms: int
    counts: Counts
    is_tombstone: bool
    superseded_by: int | None
    searched_to: int
    delete_horizon_ms: int | None
    undecided: int | None = None


class Rule(NamedTuple):
    """One rule: its setting, whether it may delete the record now, the earliest time (None: the
    rule does not depend on time), the reason, and what can delay that. Sizes are in bytes.

        older         its `of` (segment or batch) is older than `span_ms`
        not_old       `of` (segment, older_segment or batch) has a record of `newest_ms`
        no_timestamp  its batch has none
        surplus       the log without its segment still has `keeps_bytes`
        needs         `missing_bytes` more, until it has; missing is null where it is not known
        no_retention  no rule is set
        superseded    by the record at `by_offset`
        aborted, no_key, open, marker_not_found
        tombstone, marker    kept `kept_ms` after the first cleaning, if it `was_cleaned`
        latest        of its key, `searched_to` (null: to the end); `is_committed`: of these
        not_searched  whether there is a later record with its key

    `dirty_ratio` is in the reason where only this must be reached. What delays it:

        active_segment  that of `offset` (null: its own), until it rolls: `segment_bytes`,
                        `size_bytes`, `rolls_ms` (or null). `stops`: newer records, or the cleaner
        stable_offset   the cleaner stops at this `offset`
        undecided       the record at `offset`, with its key, may be committed
        unknown_segment what else is in its segment is not known
    """

    setting: str
    may_now: bool
    not_before_ms: int | None
    reason: Statement
    delay: Statement | None = None


class Retention(NamedTuple):
    """All rules that apply. `not_before_ms` is the earliest of their times, None if none has
    one.
    """

    may_now: bool
    not_before_ms: int | None
    rules: tuple[Rule, ...]


NEVER: Final[Statement] = {"kind": "no_retention"}


def explain_retention(
    config: LogConfig,
    segments: Sequence[SegmentFacts],
    record: RecordFacts,
    last_stable_offset: int,
    now_ms: int,
) -> Retention:
    """What may delete the record. `segments`: all of the log's, oldest first; one holds its
    offset, and their times are known up to that of the record that supersedes it.
    """
    index = _segment_of(segments, record.offset)
    rules: list[Rule] = []
    rules += _by_time(config, segments, index, now_ms)
    rules += _by_size(config, segments, index)
    if config.cleanup_compact:
        rules.append(_by_compaction(config, segments, record, last_stable_offset, now_ms))
    if not rules:
        rules.append(Rule("cleanup.policy", False, None, NEVER))
    times = [rule.not_before_ms for rule in rules if rule.not_before_ms is not None]
    may_now = any(rule.may_now for rule in rules)
    return Retention(may_now, min(times, default=None), tuple(rules))


def _segment_of(segments: Sequence[SegmentFacts], offset: int) -> int:
    return next(
        number
        for number, segment in enumerate(segments)
        if segment.base_offset <= offset < segment.next_offset
    )


def _by_time(
    config: LogConfig, segments: Sequence[SegmentFacts], index: int, now_ms: int
) -> Iterator[Rule]:
    segment = segments[index]
    # Older segments are deleted first, so the newest record of all of them decides.
    newest = max(range(index + 1), key=lambda at: segments[at].largest_timestamp_ms)
    newest_ms = segments[newest].largest_timestamp_ms
    not_before_ms = expires_ms(newest_ms, config)
    if not_before_ms is None:
        return
    span_ms = config.retention_ms
    if now_ms > not_before_ms:
        older: Statement = {"kind": "older", "of": "segment", "span_ms": span_ms}
        yield Rule("retention.ms", True, not_before_ms, older)
        return
    whose = "segment" if newest == index else "older_segment"
    reason = {"kind": "not_old", "of": whose, "span_ms": span_ms, "newest_ms": newest_ms}
    delay = _until_rolled(config, segment, "newer_records") if segment.is_active else None
    yield Rule("retention.ms", False, not_before_ms, reason, delay)


def _until_rolled(
    config: LogConfig, segment: SegmentFacts, stops: str, offset: int | None = None
) -> Statement:
    """The active segment, and when it rolls."""
    return {
        "kind": "active_segment",
        "stops": stops,
        "offset": offset,
        "segment_bytes": config.segment_bytes,
        "size_bytes": segment.size_bytes,
        "rolls_ms": segment.rolls_ms,
    }


def _by_size(config: LogConfig, segments: Sequence[SegmentFacts], index: int) -> Iterator[Rule]:
    missing = missing_bytes(sum(each.size_bytes for each in segments[index + 1 :]), config)
    if missing is None:
        return
    keeps_bytes = config.retention_bytes
    if missing <= 0:
        yield Rule("retention.bytes", True, None, {"kind": "surplus", "keeps_bytes": keeps_bytes})
        return
    needs = {"kind": "needs", "keeps_bytes": keeps_bytes, "missing_bytes": missing}
    yield Rule("retention.bytes", False, None, needs)


COMPACT: Final = "cleanup.policy=compact"
_DROPPED: Final = {Counts.ABORTED: "aborted", Counts.NO_KEY: "no_key"}
_STAYS: Final = {Counts.OPEN: "open", Counts.UNKNOWN: "marker_not_found"}


def _by_compaction(
    config: LogConfig,
    segments: Sequence[SegmentFacts],
    record: RecordFacts,
    last_stable_offset: int,
    now_ms: int,
) -> Rule:
    if record.counts in _STAYS:
        return Rule(COMPACT, False, None, {"kind": _STAYS[record.counts]})

    def once_cleaned(last: int, reason: Statement, after_ms: int | None = None) -> Rule:
        return _once_cleaned(
            config, segments, record.offset, last, reason, after_ms, last_stable_offset, now_ms
        )

    if record.counts in _DROPPED:
        return once_cleaned(record.offset, {"kind": _DROPPED[record.counts]})
    rules: list[Rule] = []
    if record.counts is Counts.BY_KEY and record.superseded_by is not None:
        by_offset = record.superseded_by
        rules.append(once_cleaned(by_offset, {"kind": "superseded", "by_offset": by_offset}))
    if record.counts is Counts.MARKER or record.is_tombstone:
        reason: Statement = {
            "kind": "tombstone" if record.counts is Counts.BY_KEY else "marker",
            "kept_ms": config.delete_retention_ms,
            "was_cleaned": record.delete_horizon_ms is not None,
        }
        if record.delete_horizon_ms is not None:
            rules.append(once_cleaned(record.offset, reason, record.delete_horizon_ms))
        elif not rules:
            rules.append(Rule(COMPACT, False, None, reason))
    # A tombstone that is superseded goes with whichever comes first.
    return min(rules, key=_soonest) if rules else _kept(record)


def _soonest(rule: Rule) -> tuple[bool, bool, int]:
    return not rule.may_now, rule.not_before_ms is None, rule.not_before_ms or 0


def _kept(record: RecordFacts) -> Rule:
    """The last of its key, as far as is known."""
    is_undecided = record.undecided is not None
    is_all = record.searched_to >= FOREVER_MS
    reason = {
        "kind": "latest",
        "is_committed": is_undecided,
        "searched_to": None if is_all or is_undecided else record.searched_to,
    }
    delay = {"kind": "undecided", "offset": record.undecided} if is_undecided else None
    return Rule(COMPACT, False, None, reason, delay)


def _once_cleaned(
    config: LogConfig,
    segments: Sequence[SegmentFacts],
    offset: int,
    last: int,
    reason: Statement,
    after_ms: int | None,
    last_stable_offset: int,
    now_ms: int,
) -> Rule:
    """The cleaner must reach the record at `last`, which lies after the one at `offset` or is the
    same.
    """
    needed = segments[_segment_of(segments, offset) : _segment_of(segments, last) + 1]
    if needed[-1].is_active:
        whose = None if last == offset else last
        delay = _until_rolled(config, needed[-1], "the_cleaner", whose)
        return Rule(COMPACT, False, None, reason, delay)
    if needed[-1].next_offset > last_stable_offset:
        stops = {"kind": "stable_offset", "offset": last_stable_offset}
        return Rule(COMPACT, False, None, reason, stops)
    times = [cleanable_ms(each.largest_timestamp_ms, config) for each in needed]
    not_before_ms = max((at for at in (*times, after_ms) if at is not None), default=None)
    if not_before_ms is not None and now_ms < not_before_ms:
        return Rule(COMPACT, False, not_before_ms, reason)
    ready = reason | {"dirty_ratio": config.min_cleanable_dirty_ratio}
    return Rule(COMPACT, True, not_before_ms, ready)
