"""Which broker setting is the default of which topic setting.

This is Kafka's ServerTopicConfigSynonyms. A topic setting may have several broker settings; the
first one that is set is used (log.retention.ms before .minutes before .hours).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ottla.config.broker import BrokerConfig
from ottla.config.value import Value, value_text

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker setting that is the default of a topic setting, and the factor between their
    units.
    """

    name: str
    factor: int = 1

    def convert(self, value: Value) -> str | None:
        """The broker's value in the topic setting's unit, as text."""
        if self.factor == 1 or value is None:
            return value_text(value)
        assert isinstance(value, int)
        return str(value * self.factor if value >= 0 else value)


def _same(*names: str, prefix: str = "") -> dict[str, tuple[Synonym, ...]]:
    return {name: (Synonym(prefix + name),) for name in names}


SYNONYMS: Final[Mapping[str, tuple[Synonym, ...]]] = {
    **_same(
        "segment.bytes",
        "retention.bytes",
        "index.interval.bytes",
        "cleanup.policy",
        "preallocate",
        "message.timestamp.type",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
        "local.retention.ms",
        "local.retention.bytes",
        "remote.copy.lag.ms",
        "remote.copy.lag.bytes",
        prefix="log.",
    ),
    **_same(
        "delete.retention.ms",
        "min.compaction.lag.ms",
        "max.compaction.lag.ms",
        prefix="log.cleaner.",
    ),
    **_same(
        "unclean.leader.election.enable",
        "min.insync.replicas",
        "compression.type",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "max.decompressed.message.bytes",
    ),
    "segment.ms": (Synonym("log.roll.ms"), Synonym("log.roll.hours", HOUR_MS)),
    "segment.jitter.ms": (
        Synonym("log.roll.jitter.ms"),
        Synonym("log.roll.jitter.hours", HOUR_MS),
    ),
    "segment.index.bytes": (Synonym("log.index.size.max.bytes"),),
    "flush.messages": (Synonym("log.flush.interval.messages"),),
    "flush.ms": (
        Synonym("log.flush.interval.ms"),
        Synonym("log.flush.scheduler.interval.ms"),
    ),
    "retention.ms": (
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", MINUTE_MS),
        Synonym("log.retention.hours", HOUR_MS),
    ),
    "max.message.bytes": (Synonym("message.max.bytes"),),
    "file.delete.delay.ms": (Synonym("log.segment.delete.delay.ms"),),
    "min.cleanable.dirty.ratio": (Synonym("log.cleaner.min.cleanable.ratio"),),
}
"""The broker settings of each topic setting. The first one with a value is used."""

_FAMILIES: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)

BROKER_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: family for family in _FAMILIES for name in family},
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
"""Broker settings for the same value. The first one that is set is used."""


def topic_defaults(broker: BrokerConfig) -> dict[str, str]:
    """All topic settings with a default in the broker's settings, as text."""
    found: dict[str, str] = {}
    for name, synonyms in SYNONYMS.items():
        for synonym in synonyms:
            text = synonym.convert(broker.value(synonym.name))
            if text is not None:
                found[name] = text
                break
    return found
