"""The effective settings of a topic: its own override the broker's."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ottla.config.broker import BrokerConfig
from ottla.config.default import log_config, topic_config
from ottla.config.topic import TopicConfig
from ottla.controller.image import ClusterImage
from ottla.log.config import LogConfig

logger = logging.getLogger("ottla.topics")


class TopicSettings:
    """Returns settings by topic name; a topic that is not in the image has the broker's."""

    def __init__(self, config: BrokerConfig, image: ClusterImage) -> None:
        self._config = config
        self._image = image
        self._reported: dict[str, tuple[str, ...]] = {}

    def log_config(self, topic: str) -> LogConfig:
        """The settings for its logs."""
        return log_config(self._overrides(topic), self._config)

    def topic_config(self, topic: str) -> TopicConfig:
        """All settings."""
        return topic_config(self._overrides(topic), self._config)

    def report(self, topic: str) -> None:
        """Log which settings of the topic cannot be used, unless the log has it already."""
        ignored = self.topic_config(topic).ignored
        for reason in ignored:
            if reason not in self._reported.get(topic, ()):
                logger.error("topic %s: a setting is ignored: %s", topic, reason)
        self._reported.pop(topic, None)
        if ignored:
            self._reported[topic] = ignored

    def _overrides(self, topic: str) -> Mapping[str, str]:
        image = self._image.topic(topic)
        return {} if image is None else image.overrides
