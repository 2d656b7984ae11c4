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
from typing import Final, NamedTuple

from ottla.journey.formatting import bytes_said, moment_said, span_said
from ottla.log.config import FOREVER_MS, LogConfig
from ottla.log.expiry import cleanable_ms, expires_ms, missing_bytes


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
    rule does not depend on time), why, and what can delay that.
    """

    setting: str
    may_now: bool
    not_before_ms: int | None
    why: str
    note: str | None = None


class Retention(NamedTuple):
    """All rules that apply. `not_before_ms` is the earliest of their times, None if none has
    one.
    """

    may_now: bool
    not_before_ms: int | None
    rules: tuple[Rule, ...]


NEVER: Final = "kept until it is deleted manually: no retention is set"


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
    place = _segment_of(segments, record.offset)
    rules: list[Rule] = []
    rules += _by_time(config, segments, place, now_ms)
    rules += _by_size(config, segments, place)
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
    config: LogConfig, segments: Sequence[SegmentFacts], place: int, now_ms: int
) -> Iterator[Rule]:
    segment = segments[place]
    # Older segments are deleted first, so the newest record of all of them decides.
    newest = max(range(place + 1), key=lambda at: segments[at].largest_timestamp_ms)
    newest_ms = segments[newest].largest_timestamp_ms
    not_before_ms = expires_ms(newest_ms, config)
    if not_before_ms is None:
        return
    span = span_said(config.retention_ms)
    if now_ms > not_before_ms:
        why = f"its segment's newest record is older than {span}: the next check may delete it"
        yield Rule("retention.ms", True, not_before_ms, why)
        return
    whose = "its segment's" if newest == place else "an older segment's"
    why = f"{span} after {whose} newest record ({moment_said(newest_ms)})"
    note = None
    if segment.is_active:
        note = f"its segment is active: newer records delay this until {_rolls(config, segment)}"
    yield Rule("retention.ms", False, not_before_ms, why, note)


def _rolls(config: LogConfig, segment: SegmentFacts) -> str:
    """When the active segment rolls."""
    full = f"{bytes_said(config.segment_bytes)} (now {bytes_said(segment.size_bytes)})"
    if segment.rolls_ms is None:
        return f"it rolls, at {full}"
    return f"it rolls, at {full} or at {moment_said(segment.rolls_ms)}"


def _by_size(config: LogConfig, segments: Sequence[SegmentFacts], place: int) -> Iterator[Rule]:
    missing = missing_bytes(sum(each.size_bytes for each in segments[place + 1 :]), config)
    if missing is None:
        return
    limit = bytes_said(config.retention_bytes)
    if missing <= 0:
        why = f"the log holds {limit} without its segment: the next check may delete it"
        yield Rule("retention.bytes", True, None, why)
        return
    why = f"the log keeps {limit}: its segment is deleted after {bytes_said(missing)} more"
    yield Rule("retention.bytes", False, None, why)


COMPACT: Final = "cleanup.policy=compact"
_DROPPED: Final = {
    Counts.ABORTED: "aborted: compaction removes it, whatever its key is",
    Counts.NO_KEY: "a record without a key: compaction removes it",
}
_STAYS: Final = {
    Counts.OPEN: "its transaction is open: compaction stops before it",
    Counts.UNKNOWN: "not known: the marker of its transaction was not found",
}


def _by_compaction(
    config: LogConfig,
    segments: Sequence[SegmentFacts],
    record: RecordFacts,
    last_stable_offset: int,
    now_ms: int,
) -> Rule:
    if record.counts in _STAYS:
        return Rule(COMPACT, False, None, _STAYS[record.counts])

    def once_cleaned(last: int, why: str, after_ms: int | None = None) -> Rule:
        return _once_cleaned(
            config, segments, record.offset, last, why, after_ms, last_stable_offset, now_ms
        )

    if record.counts in _DROPPED:
        return once_cleaned(record.offset, _DROPPED[record.counts])
    rules: list[Rule] = []
    if record.counts is Counts.BY_KEY and record.superseded_by is not None:
        rules.append(
            once_cleaned(record.superseded_by, f"superseded by offset {record.superseded_by}")
        )
    if record.counts is Counts.MARKER or record.is_tombstone:
        what = "a tombstone" if record.counts is Counts.BY_KEY else "a transaction's marker"
        since = "" if record.counts is Counts.BY_KEY else " that finds no record of it"
        kept = span_said(config.delete_retention_ms)
        why = f"{what}, kept {kept} after the first cleaning{since}"
        if record.delete_horizon_ms is not None:
            rules.append(once_cleaned(record.offset, why, record.delete_horizon_ms))
        elif not rules:
            rules.append(Rule(COMPACT, False, None, f"{why}, which has not happened yet"))
    # A tombstone that is superseded goes with whichever comes first.
    return min(rules, key=_soonest) if rules else _kept(record)


def _soonest(rule: Rule) -> tuple[bool, bool, int]:
    return not rule.may_now, rule.not_before_ms is None, rule.not_before_ms or 0


def _kept(record: RecordFacts) -> Rule:
    """The last of its key, as far as is known."""
    why = "the latest record with its key"
    if record.undecided is not None:
        why = "the latest record with its key that is committed"
    elif record.searched_to < FOREVER_MS:
        why = f"no later record with its key up to offset {record.searched_to - 1}"
    note = None
    if record.undecided is not None:
        note = f"superseded once offset {record.undecided} is committed, which has its key, too"
    return Rule(COMPACT, False, None, f"{why}: compaction keeps it", note)


def _once_cleaned(
    config: LogConfig,
    segments: Sequence[SegmentFacts],
    offset: int,
    last: int,
    why: str,
    after_ms: int | None,
    last_stable_offset: int,
    now_ms: int,
) -> Rule:
    """The cleaner must reach the record at `last`, which lies after the one at `offset` or is the
    same.
    """
    needed = segments[_segment_of(segments, offset) : _segment_of(segments, last) + 1]
    whose = "its segment" if last == offset else f"the segment of offset {last}"
    if needed[-1].is_active:
        note = f"{whose} is active: the cleaner skips it until {_rolls(config, needed[-1])}"
        return Rule(COMPACT, False, None, why, note)
    if needed[-1].next_offset > last_stable_offset:
        note = f"the cleaner stops at the last stable offset, {last_stable_offset}"
        return Rule(COMPACT, False, None, why, note)
    times = [cleanable_ms(each.largest_timestamp_ms, config) for each in needed]
    not_before_ms = max((at for at in (*times, after_ms) if at is not None), default=None)
    if not_before_ms is not None and now_ms < not_before_ms:
        said = f"{why}; not before {moment_said(not_before_ms)}"
        return Rule(COMPACT, False, not_before_ms, said)
    ratio = config.min_cleanable_dirty_ratio
    why += f": the cleaner may remove it once {ratio:.0%} of the log is dirty"
    return Rule(COMPACT, True, not_before_ms, why)
