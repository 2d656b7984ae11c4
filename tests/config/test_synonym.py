import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.synonym import BROKER_SYNONYMS, SYNONYMS, topic_defaults
from ottla.config.topic import TopicConfig


@pytest.mark.parametrize(
    ("given", "topic_setting", "text"),
    [
        ({}, "retention.ms", "604800000"),
        ({"log.retention.hours": "2"}, "retention.ms", "7200000"),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "retention.ms", "180000"),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, "retention.ms", "4"),
        ({"log.retention.hours": "-1"}, "retention.ms", "-1"),
        ({"log.roll.hours": "1"}, "segment.ms", "3600000"),
        ({"log.roll.ms": "9", "log.roll.hours": "1"}, "segment.ms", "9"),
        ({"log.roll.jitter.hours": "1"}, "segment.jitter.ms", "3600000"),
        ({"log.flush.scheduler.interval.ms": "8"}, "flush.ms", "8"),
        ({"log.flush.interval.ms": "7"}, "flush.ms", "7"),
        ({"message.max.bytes": "6"}, "max.message.bytes", "6"),
        ({"log.cleanup.policy": "compact,delete"}, "cleanup.policy", "compact,delete"),
        ({"log.cleaner.min.cleanable.ratio": "0.1"}, "min.cleanable.dirty.ratio", "0.1"),
        ({"log.preallocate": "true"}, "preallocate", "true"),
    ],
)
def test_a_topics_default_is_the_brokers_setting(
    given: dict[str, str], topic_setting: str, text: str
) -> None:
    assert topic_defaults(BrokerConfig(given))[topic_setting] == text


def test_without_settings_a_topic_has_its_own_defaults() -> None:
    defaults = topic_defaults(BrokerConfig())
    for name, definition in TopicConfig.definitions.items():
        assert defaults.get(name, definition.default_text) == definition.default_text


def test_every_name_of_the_tables_is_a_setting() -> None:
    for name, synonyms in SYNONYMS.items():
        assert name in TopicConfig.definitions
        assert all(synonym.name in BrokerConfig.definitions for synonym in synonyms)
    for name, names in BROKER_SYNONYMS.items():
        assert {name, *names} <= set(BrokerConfig.definitions)


def test_a_dynamic_setting_changes_the_default() -> None:
    broker = BrokerConfig({"log.retention.hours": "2"})
    broker.reconfigure({"log.retention.ms": "5"}, {})
    assert topic_defaults(broker)["retention.ms"] == "5"
