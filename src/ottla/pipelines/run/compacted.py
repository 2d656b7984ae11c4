"""Deletions that a compacted topic has forgotten before a query has read them.

The log cleaner removes a tombstone `delete.retention.ms` after it has cleaned what was before it. A
query that reads on later than that does not learn of the deletion, and keeps the row of the key.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import Brokers

if TYPE_CHECKING:
    from ottla.pipelines.kafka.settings import KafkaSettings

log: Final = logging.getLogger("ottla.pipelines")

POLICY: Final = "cleanup.policy"
KEPT_FOR: Final = "delete.retention.ms"
ASKED_AFTER_MS: Final = 60_000
"""The brokers are not asked sooner after a batch: no topic forgets deletions that fast."""
_HOUR_MS: Final = 3_600_000


def forgotten_deletions(
    kafka: KafkaSettings,
    topic: str,
    at: Mapping[int, int],
    last_ms: int | None,
    now_ms: int,
    target: str,
) -> str | None:
    """Return what to tell of a topic that may have forgotten deletions, None where it has not.

    `at`: where the query continues; `last_ms`: when its last batch began. Asks the brokers. Where
    they do not give the topic's settings nothing is known.
    """
    if last_ms is None or not at or now_ms - last_ms < ASKED_AFTER_MS:
        return None
    brokers = Brokers(kafka)
    try:
        settings = brokers.topic_settings(topic)
    except PipelineError as error:
        log.debug("The settings of topic %s are not known: %s", topic, error)
        return None
    kept_ms = int(settings.get(KEPT_FOR, "-1"))
    if "compact" not in settings.get(POLICY, "") or kept_ms < 0 or now_ms - last_ms <= kept_ms:
        return None
    since = brokers.offsets({topic: sorted(at)}, max(0, now_ms - kept_ms))[topic]
    ends = brokers.offsets({topic: sorted(at)}, "latest")[topic]
    if not unread_before(at, since, ends):
        return None
    return (
        f"Topic {topic!r} is compacted and keeps tombstones for {_hours(kept_ms)} "
        f"({KEPT_FOR}), and the last batch of this query began {_hours(now_ms - last_ms)} ago: "
        f"deletions that were written since then may be gone, and their rows still be in {target}. "
        "To be sure, read the topic again with a new checkpoint and a new table, or give the topic "
        f"a longer {KEPT_FOR}"
    )


def unread_before(at: Mapping[int, int], since: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    """Tell whether a partition has unread offsets before those of a time. Pure.

    `since`: the first offset of that time, -1 where all records are older.
    """
    return any(
        offset < (ends[partition] if since[partition] < 0 else since[partition])
        for partition, offset in at.items()
    )


def _hours(ms: int) -> str:
    return f"{ms / _HOUR_MS:.1f} h"
