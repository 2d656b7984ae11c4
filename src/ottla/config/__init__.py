"""Settings of the broker and of topics: Kafka's names, types, defaults and messages."""

from ottla.config.broker import BrokerConfig
from ottla.config.error import ConfigError

__all__ = ["BrokerConfig", "ConfigError"]
