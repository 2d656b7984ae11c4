from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.config.broker import BrokerConfig, is_known
from ottla.config.broker_server import OwnSettings
from ottla.config.setting import Setting, Settings
from ottla.config.topic import TopicConfig
from ottla.config.unneeded import UNNEEDED, unneeded_reason

KAFKA = Path(__file__).with_name("kafka-4.3.1-settings.txt")


def kafka_settings(room: str) -> Iterator[list[str]]:
    for line in KAFKA.read_text().splitlines():
        if line.startswith(room):
            yield line.split("|")


def test_every_broker_setting_of_kafka_is_known() -> None:
    names = [name for _, name, *_ in kafka_settings("broker")]
    assert len(names) == 360
    assert [name for name in names if not is_known(name)] == []


def test_every_topic_setting_of_kafka_is_known() -> None:
    names = {name for _, name, *_ in kafka_settings("topic")}
    assert set(TopicConfig.definitions) == names


@pytest.mark.parametrize(("room", "group"), [("broker", BrokerConfig), ("topic", TopicConfig)])
def test_types_and_defaults_are_kafkas(room: str, group: type[Settings]) -> None:
    """Where ours differs, the definition itself must say so."""
    checked = 0
    for _, name, kind, default, update in kafka_settings(room):
        definition = group.definitions.get(name)
        if definition is None:
            continue
        checked += 1
        shown = "null" if definition.default_text is None else definition.default_text
        if definition.kafka_default is None:
            assert (name, shown) == (name, default)
        else:
            assert shown != default, name
            assert definition.why, name
        if name not in KIND_DIFFERS:
            assert (name, definition.kind.name) == (name, kind)
        if room == "broker" and definition.update.value != update:
            assert name in NOT_CHANGED_WHILE_RUNNING, name
    assert checked > 30


KIND_DIFFERS = {
    # A Java class here, which is refused whatever it is.
    "create.topic.policy.class.name",
    "alter.config.policy.class.name",
    "client.quota.callback.class",
    # A list in Kafka; one folder here.
    "log.dir",
}
NOT_CHANGED_WHILE_RUNNING = {
    # Each would need listeners to be opened and closed while running.
    "listeners",
    "listener.security.protocol.map",
    # Refused or without effect unless at their default.
    "config.providers",
    "log.local.retention.ms",
    "log.local.retention.bytes",
}


KEPT_FROM_3_9 = {
    # ZooKeeper mode's, gone with it in Kafka 4.
    "zookeeper.connect": None,
    "zookeeper.session.timeout.ms": "18000",
    "zookeeper.connection.timeout.ms": None,
    "leader.imbalance.per.broker.percentage": "10",
    "controlled.shutdown.max.retries": "3",
    "controlled.shutdown.retry.backoff.ms": "5000",
    # Only ever set dynamically (QuotaConfig), so not in the broker's own definitions.
    "leader.replication.throttled.rate": "9223372036854775807",
    "follower.replication.throttled.rate": "9223372036854775807",
}


def test_nothing_is_in_force_that_kafka_does_not_have() -> None:
    kafkas = {name for _, name, *_ in kafka_settings("broker")} | set(KEPT_FROM_3_9)
    assert set(BrokerConfig.definitions) - kafkas == set(OwnSettings.definitions)
    for name, default in KEPT_FROM_3_9.items():
        assert BrokerConfig.definitions[name].default_text == default


def test_a_setting_is_in_force_or_unneeded_and_never_both() -> None:
    assert not set(UNNEEDED) & set(BrokerConfig.definitions)
    assert unneeded_reason("listener.name.internal.ssl.keystore.location")
    assert unneeded_reason("num.partitions") is None


def test_every_setting_is_documented() -> None:
    every: list[Setting[object]] = [
        *BrokerConfig.definitions.values(),
        *TopicConfig.definitions.values(),
    ]
    assert [each.name for each in every if not each.documentation.endswith(".")] == []
