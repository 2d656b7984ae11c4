"""When retention may delete a record of a log whose segments are not known. Pure.

Only brokers know their segments. What remains are bounds: a segment's newest record is as new as
that of any of its batches, so by time it is deleted no earlier than the batch alone would be. See
`retention_rules` for the rules themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.journey.retention_rules import COMPACT, NEVER, Retention, Rule, Statement
from ottla.log.config import LogConfig
from ottla.log.expiry import expires_ms

UNKNOWN_SEGMENT: Final[Statement] = {"kind": "unknown_segment"}


def bound_retention(config: LogConfig, newest_ms: int, now_ms: int) -> Retention:
    """What may delete a record. `newest_ms`: the largest timestamp of its batch, -1 for none."""
    rules = [*_by_time(config, newest_ms, now_ms), *_by_size(config)]
    if config.cleanup_compact:
        rules.append(Rule(COMPACT, True, None, {"kind": "not_searched"}))
    if not rules:
        rules.append(Rule("cleanup.policy", False, None, NEVER))
    times = [rule.not_before_ms for rule in rules if rule.not_before_ms is not None]
    may_now = any(rule.may_now for rule in rules)
    return Retention(may_now, min(times, default=None), tuple(rules))


def _by_time(config: LogConfig, newest_ms: int, now_ms: int) -> Iterator[Rule]:
    not_before_ms = expires_ms(newest_ms, config)
    if not_before_ms is None:
        return
    if newest_ms < 0:
        yield Rule("retention.ms", True, None, {"kind": "no_timestamp"}, UNKNOWN_SEGMENT)
        return
    reason: Statement = {"kind": "older", "of": "batch", "span_ms": config.retention_ms}
    is_over = now_ms > not_before_ms
    if not is_over:
        reason |= {"kind": "not_old", "newest_ms": newest_ms}
    yield Rule("retention.ms", is_over, not_before_ms, reason, UNKNOWN_SEGMENT)


def _by_size(config: LogConfig) -> Iterator[Rule]:
    if not config.cleanup_delete or config.retention_bytes < 0:
        return
    needs = {"kind": "needs", "keeps_bytes": config.retention_bytes, "missing_bytes": None}
    yield Rule("retention.bytes", True, None, needs)
