from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.config.broker import BrokerConfig, is_known
from ottla.config.broker_authorizer import AuthorizerSettings
from ottla.config.broker_server import OwnSettings
from ottla.config.error import ConfigError
from ottla.config.setting import Setting, Settings
from ottla.config.topic import TopicConfig
from ottla.config.unneeded import UNNEEDED, unneeded_reason

KAFKA = Path(__file__).with_name("kafka-4.4.0-settings.txt")


def kafka_settings(room: str) -> Iterator[list[str]]:
    for line in KAFKA.read_text().splitlines():
        if line.startswith(room):
            yield line.split("|")


def test_every_broker_setting_of_kafka_is_known() -> None:
    names = [name for _, name, *_ in kafka_settings("broker")]
    assert len(names) == 379
    assert [name for name in names if not is_known(name)] == []


def test_every_topic_setting_of_kafka_is_known() -> None:
    names = {name for _, name, *_ in kafka_settings("topic")}
    assert set(TopicConfig.definitions) == names


@pytest.mark.parametrize(("room", "group"), [("broker", BrokerConfig), ("topic", TopicConfig)])
def test_types_and_defaults_are_kafkas(room: str, group: type[Settings]) -> None:
    """Where ours differs, the definition itself must say so."""
    checked = 0
    for _, name, kind, default, update, _, *marks in kafka_settings(room):
        definition = group.definitions.get(name)
        if definition is None:
            continue
        checked += 1
        assert (name, definition.internal) == (name, marks == ["internal"])
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
    # Changed files are read again, and stores change for one listener: listener.name.<l>.ssl....
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
    "sasl.enabled.mechanisms",
    "sasl.mechanism.inter.broker.protocol",
    # In Kafka only for a listener that does not exist yet.
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    # Refused or without effect unless at their default.
    "config.providers",
    "log.local.retention.ms",
    "log.local.retention.bytes",
    "log.remote.copy.lag.ms",
    "log.remote.copy.lag.bytes",
}

STRICTER = {
    "sasl.server.max.receive.size": 1,
    # Kafka starts with these, and would ask an issuer's address without a pause.
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": 1_000,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": 1,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": 1,
    "sasl.oauthbearer.clock.skew.seconds": 0,
    "sasl.login.retry.backoff.ms": 1,
    "sasl.login.retry.backoff.max.ms": 1,
    # Kafka checks them in ExpiringCredentialRefreshConfig, and the upper ends too.
    "sasl.login.connect.timeout.ms": 1,
    "sasl.login.read.timeout.ms": 1,
    "sasl.login.refresh.buffer.seconds": 0,
    "sasl.login.refresh.min.period.seconds": 0,
    "sasl.login.refresh.window.factor": 0.5,
    "sasl.login.refresh.window.jitter": 0,
    # Kafka starts with less than these, which nothing there can use.
    "broker.id": -1,
    "default.replication.factor": 1,
    "group.initial.rebalance.delay.ms": 0,
    "log.flush.interval.ms": 0,
    "log.flush.scheduler.interval.ms": 1,
    "log.retention.bytes": -1,
    "log.retention.hours": -1,
    "log.retention.minutes": -1,
    "log.retention.ms": -1,
    "offset.metadata.max.bytes": 0,
    "replica.fetch.min.bytes": 0,
    "replica.fetch.wait.max.ms": 0,
    "replica.high.watermark.checkpoint.interval.ms": 1,
    "socket.receive.buffer.bytes": -1,
    "socket.send.buffer.bytes": -1,
    # Kafka checks these and the two times of replicas elsewhere, in KafkaConfig.validateValues.
    "log.roll.ms": 1,
    "log.roll.jitter.ms": 0,
    "replica.lag.time.max.ms": 1,
    "replica.socket.timeout.ms": 0,
    # Our default, -1, fits any number of brokers.
    "offsets.topic.replication.factor": -1,
    "share.coordinator.state.topic.replication.factor": -1,
    "transaction.state.log.replication.factor": -1,
}
"""The least value, where it is not Kafka's."""
SMALLEST = {"SHORT": -(2**15), "INT": -(2**31), "LONG": -(2**63)}


@pytest.mark.parametrize(("room", "group"), [("broker", BrokerConfig), ("topic", TopicConfig)])
def test_limits_of_numbers_are_kafkas(room: str, group: type[Settings]) -> None:
    checked = 0
    for _, name, kind, default, _, valid, *_ in kafka_settings(room):
        definition = group.definitions.get(name)
        if definition is None or kind not in (*SMALLEST, "DOUBLE"):
            continue
        if definition.validator is not None and definition.validator.allowed == "only the default":
            definition.parse(default)
            continue
        checked += 1
        step = 0.001 if kind == "DOUBLE" else 1
        low, _, high = valid.removesuffix(" or -1").strip("[]").partition("...")
        high = high.strip(",")
        least = STRICTER.get(name, float(low.strip(",")) if low else None)
        if kind != "DOUBLE" and least is not None:
            least = int(least)
        if least is None:
            definition.parse(str(SMALLEST[kind]))
        else:
            definition.parse(str(least))
            with pytest.raises(ConfigError, match=f"Invalid value .* for configuration {name}: "):
                definition.parse(str(least - step))
        if high:
            definition.parse(high)
            with pytest.raises(ConfigError, match=f"Invalid value .* for configuration {name}: "):
                definition.parse(str(float(high) + step if kind == "DOUBLE" else int(high) + step))
        if valid.endswith(" or -1"):
            definition.parse("-1")
    assert checked > 10


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
    # Kafka's authorizer defines its settings itself.
    of_authorizer = set(AuthorizerSettings.definitions) - kafkas
    own = set(OwnSettings.definitions) | of_authorizer
    assert set(BrokerConfig.definitions) - kafkas == own
    for name, default in KEPT_FROM_3_9.items():
        assert BrokerConfig.definitions[name].default_text == default


def test_a_setting_is_in_force_or_unneeded_and_never_both() -> None:
    assert not set(UNNEEDED) & set(BrokerConfig.definitions)
    assert is_known("listener.name.internal.ssl.keystore.location")
    assert unneeded_reason("num.partitions") is None


def test_every_setting_is_documented() -> None:
    every: list[Setting[object]] = [
        *BrokerConfig.definitions.values(),
        *TopicConfig.definitions.values(),
    ]
    assert [each.name for each in every if not each.documentation.endswith(".")] == []
