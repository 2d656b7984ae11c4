"""When retention may delete a record, and what keeps it until then. Pure; the rules are Kafka's.

Retention deletes whole segments, the oldest first. By time: when the newest record of a segment is
older than `retention.ms`. By size: when the log without the segment still holds `retention.bytes`.
Compaction removes a record when a later one has its key, but never in the active segment and never
before `min.compaction.lag.ms`. It removes a tombstone (a record without a value)
`delete.retention.ms` after it was first cleaned. An administrator may delete records at any time
(DeleteRecords).
"""

from collections.abc import Iterator, Sequence
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


class RecordFacts(NamedTuple):
    """The record. `superseded_by`: the offset of a later record with its key; `searched_to`: the
    search for one ended here.
    """

    offset: int
    timestamp_ms: int
    has_key: bool
    is_tombstone: bool
    superseded_by: int | None
    searched_to: int
    delete_horizon_ms: int | None


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
    config: LogConfig, segments: Sequence[SegmentFacts], record: RecordFacts, now_ms: int
) -> Retention:
    """What may delete the record. `segments`: all of the log's, oldest first; one holds its
    offset.
    """
    place = next(
        number
        for number, segment in enumerate(segments)
        if segment.base_offset <= record.offset < segment.next_offset
    )
    rules: list[Rule] = []
    rules += _by_time(config, segments, place, now_ms)
    rules += _by_size(config, segments, place)
    if config.cleanup_compact:
        rules.append(_by_compaction(config, segments[place], record, now_ms))
    if not rules:
        rules.append(Rule("cleanup.policy", False, None, NEVER))
    times = [rule.not_before_ms for rule in rules if rule.not_before_ms is not None]
    may_now = any(rule.may_now for rule in rules)
    return Retention(may_now, min(times, default=None), tuple(rules))


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


def _by_compaction(
    config: LogConfig, segment: SegmentFacts, record: RecordFacts, now_ms: int
) -> Rule:
    setting = "cleanup.policy=compact"
    if record.superseded_by is None and not record.is_tombstone:
        why = "the latest record with its key"
        if record.searched_to < FOREVER_MS:
            why = f"no later record with its key up to offset {record.searched_to - 1}"
        return Rule(setting, False, None, f"{why}: compaction keeps it")
    if record.superseded_by is not None:
        why = f"superseded by offset {record.superseded_by}"
        cleanable = cleanable_ms(segment.largest_timestamp_ms, config)
        not_before_ms = record.timestamp_ms if cleanable is None else cleanable
    else:
        why = f"a tombstone, kept {span_said(config.delete_retention_ms)} after the first cleaning"
        if record.delete_horizon_ms is None:
            return Rule(setting, False, None, f"{why}, which has not happened yet")
        not_before_ms = record.delete_horizon_ms
    if segment.is_active:
        note = f"its segment is active: the cleaner skips it until {_rolls(config, segment)}"
        return Rule(setting, False, None, why, note)
    if now_ms < not_before_ms:
        return Rule(
            setting, False, not_before_ms, f"{why}; not before {moment_said(not_before_ms)}"
        )
    ratio = config.min_cleanable_dirty_ratio
    why += f": the cleaner may remove it once {ratio:.0%} of the log is dirty"
    return Rule(setting, True, not_before_ms, why)
