"""The effective settings of a topic: its own override the broker's."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.config.broker import BrokerConfig
from ottla.config.default import log_config, topic_config
from ottla.config.topic import TopicConfig
from ottla.controller.image import ClusterImage
from ottla.log.config import LogConfig


class TopicSettings:
    """Returns settings by topic name; a topic that is not in the image has the broker's."""

    def __init__(self, config: BrokerConfig, image: ClusterImage) -> None:
        self._config = config
        self._image = image

    def log_config(self, topic: str) -> LogConfig:
        """The settings for its logs."""
        return log_config(self._overrides(topic), self._config)

    def topic_config(self, topic: str) -> TopicConfig:
        """All settings."""
        return topic_config(self._overrides(topic), self._config)

    def _overrides(self, topic: str) -> Mapping[str, str]:
        image = self._image.topic(topic)
        return {} if image is None else image.overrides
