"""When retention may delete a record of a log whose segments are not known. Pure.

Only brokers know their segments. What remains are bounds: a segment's newest record is as new as
that of any of its batches, so by time it is deleted no earlier than the batch alone would be. See
`retention_rules` for the rules themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.journey.formatting import bytes_said, moment_said, span_said
from ottla.journey.retention_rules import COMPACT, NEVER, Retention, Rule
from ottla.log.config import LogConfig
from ottla.log.expiry import expires_ms

UNKNOWN_SEGMENT: Final = "what else is in its segment is not known"


def bound_retention(config: LogConfig, newest_ms: int, now_ms: int) -> Retention:
    """What may delete a record. `newest_ms`: the largest timestamp of its batch, -1 for none."""
    rules = [*_by_time(config, newest_ms, now_ms), *_by_size(config)]
    if config.cleanup_compact:
        why = "if its key has a later record, or it has no key: later records were not searched"
        rules.append(Rule(COMPACT, True, None, why))
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
        yield Rule("retention.ms", True, None, "its batch has no timestamp", UNKNOWN_SEGMENT)
        return
    span = span_said(config.retention_ms)
    if now_ms > not_before_ms:
        why = f"its batch is older than {span}: deleted when all of its segment is"
        yield Rule("retention.ms", True, not_before_ms, why, UNKNOWN_SEGMENT)
        return
    why = f"{span} after its batch's newest record ({moment_said(newest_ms)}), or later"
    yield Rule("retention.ms", False, not_before_ms, why, UNKNOWN_SEGMENT)


def _by_size(config: LogConfig) -> Iterator[Rule]:
    if not config.cleanup_delete or config.retention_bytes < 0:
        return
    why = f"the log keeps {bytes_said(config.retention_bytes)}: how much follows is not known"
    yield Rule("retention.bytes", True, None, why)
