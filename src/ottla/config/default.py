"""The settings of a topic on a broker: its own settings over the broker's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from ottla.config.broker import BrokerConfig
from ottla.config.synonym import topic_defaults
from ottla.config.topic import TopicConfig
from ottla.log.config import LogConfig


def topic_config(overrides: Mapping[str, str], broker: BrokerConfig) -> TopicConfig:
    """The settings of a topic with these overrides, which are stored: see `TopicConfig.stored`.

    Topics with equal settings share one object, so that thousands of topics cost little.
    """
    return _topic_config(tuple(sorted(overrides.items())), BrokerVersion(broker, broker.version))


def log_config(overrides: Mapping[str, str], broker: BrokerConfig) -> LogConfig:
    """The same as a LogConfig, for a partition's log."""
    return _log_config(tuple(sorted(overrides.items())), BrokerVersion(broker, broker.version))


@dataclass(frozen=True, slots=True)
class BrokerVersion:
    """A broker's settings at one version; equal only to itself."""

    broker: BrokerConfig
    version: int


@lru_cache(maxsize=1024)
def _topic_config(overrides: tuple[tuple[str, str], ...], key: BrokerVersion) -> TopicConfig:
    return TopicConfig.stored(topic_defaults(key.broker), dict(overrides))


@lru_cache(maxsize=1024)
def _log_config(overrides: tuple[tuple[str, str], ...], key: BrokerVersion) -> LogConfig:
    topic = _topic_config(overrides, key)
    values: dict[str, Any] = {
        "segment_bytes": topic.internal_segment_bytes or topic.segment_bytes,
        "cleanup_delete": "delete" in topic.cleanup_policy,
        "cleanup_compact": "compact" in topic.cleanup_policy,
        "timestamp_type": topic.message_timestamp_type,
        "timestamp_before_max_ms": topic.message_timestamp_before_max_ms,
        "timestamp_after_max_ms": topic.message_timestamp_after_max_ms,
    }
    for field in fields(LogConfig):
        if field.init and field.name not in values:
            values[field.name] = getattr(topic, field.name)
    return LogConfig(**values)
