import pytest

from ottla.config.broker import BrokerConfig, check_dynamic
from ottla.config.error import ConfigError
from ottla.config.value import LONG_MAX


def test_defaults_and_given_values() -> None:
    config = BrokerConfig.from_properties({"num.partitions": "6", "log.dirs": "/data"})
    assert config.num_partitions == 6
    assert config.log_retention_hours == 168
    assert str(config.data_folder) == "/data"
    assert config.id == 1
    assert config.endpoints[0].port == 9092
    assert config.notes == ()
    assert str(BrokerConfig().data_folder) == "ottla-data"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num.partition": "1"}, "Unknown setting num.partition; did you mean num.partitions?"),
        (
            {"inter.broker.listener.name": "REPLICATION"},
            "No such listener in listeners (PLAINTEXT)",
        ),
        ({"replica.fetch.wait.max.ms": "30001"}, "replica.lag.time.max.ms (30000)"),
        ({"replica.socket.timeout.ms": "1"}, "replica.fetch.wait.max.ms (500)"),
        ({"offsets.topic.replication.factor": "0"}, "Value must be -1 or above 0"),
        ({"transaction.state.log.replication.factor": "0"}, "Value must be -1 or above 0"),
        ({"replica.selector.class": "org.example.Any"}, "RackAwareReplicaSelector"),
        ({"replica.lag.time.max": "1"}, "did you mean replica.lag.time.max.ms?"),
        ({"zzzzzzzzzz": "1"}, "Unknown setting zzzzzzzzzz"),
        ({"num.partitions": "0"}, "configuration num.partitions: Value must be at least 1"),
        ({"log.dirs": "/a,/b"}, "Only one folder is supported"),
        ({"listeners": ""}, "At least one listener must be given"),
        (
            {"listeners": "SASL_PLAINTEXT://:9093"},
            "value GSSAPI for configuration sasl.enabled.mechanisms: Set it to any of PLAIN",
        ),
        (
            {"listeners": "SASL_PLAINTEXT://:9093", "sasl.enabled.mechanisms": ""},
            "sasl.enabled.mechanisms must not be empty",
        ),
        (
            {"listeners": "SASL_PLAINTEXT://:9093", "sasl.enabled.mechanisms": "PLAIN"},
            "listener.name.sasl_plaintext.plain.sasl.jaas.config must have the users of PLAIN",
        ),
        (
            {
                "listeners": "SASL_PLAINTEXT://:9093",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": "PlainLoginModule",
            },
            "listener.name.sasl_plaintext.plain.sasl.jaas.config: Expected a login module",
        ),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "advertised.listeners"),
        ({"broker.id": "2", "node.id": "3"}, "node.id is 3"),
        ({"log.dir": ""}, "Configuration 'log.dir' must not be empty."),
        ({"log.dirs": ""}, "Configuration 'log.dirs' must not be empty."),
        ({"log.retention.ms": "0"}, "log.retention.ms: Value must be unlimited (-1) or at least 1"),
        ({"log.retention.minutes": "0"}, "configuration log.retention.minutes: Value must be un"),
        ({"log.retention.hours": "0"}, "configuration log.retention.hours: Value must be un"),
        ({"max.connections.per.ip": "0"}, "only if max.connections.per.ip.overrides property is"),
        ({"group.min.session.timeout.ms": "9000000"}, "group.max.session.timeout.ms"),
        (
            {"group.consumer.session.timeout.ms": "9000"},
            "group.consumer.session.timeout.ms (9000) must be at least "
            "group.consumer.min.session.timeout.ms (45000)",
        ),
        ({"group.consumer.heartbeat.interval.ms": "15001"}, "max.heartbeat.interval.ms (15000)"),
        ({"group.consumer.assignment.interval.ms": "15001"}, "max.assignment.interval.ms (15000)"),
        (
            {
                "group.consumer.min.session.timeout.ms": "1000",
                "group.consumer.session.timeout.ms": "5000",
            },
            "must be below group.consumer.session.timeout.ms (5000)",
        ),
        ({"group.consumer.migration.policy": "sideways"}, "String must be one of: bidirectional"),
        ({"group.consumer.assignors": "range"}, "uniform is the default"),
        ({"log.cleaner.max.compaction.lag.ms": "5", "log.cleaner.min.compaction.lag.ms": "6"}, "6"),
        ({"max.connections.per.ip.overrides": "host"}, "Expected host:number"),
        ({"max.connections.per.ip.overrides": "my host:5"}, "Expected host:number"),
        ({"max.connections.per.ip.overrides": ":5"}, "Expected host:number"),
        ({"ottla.metrics.listener": "9100"}, "ottla.metrics.listener: Expected HOST:PORT"),
        ({"ottla.metrics.listener": "host:99999"}, "Expected HOST:PORT"),
        (
            {"authorizer.class.name": "org.example.Authorizer"},
            "Only Kafka's own authorizers are supported",
        ),
        ({"remote.log.storage.system.enable": "true"}, "Tiered storage is not supported"),
        ({"security.inter.broker.protocol": "TLS"}, "String must be one of: PLAINTEXT, SSL"),
        (
            {"security.inter.broker.protocol": "SSL"},
            "security.inter.broker.protocol: No such listener in listeners (PLAINTEXT)",
        ),
        (
            {
                "security.inter.broker.protocol": "PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
            },
            "Only one of inter.broker.listener.name and security.inter.broker.protocol",
        ),
        (
            {"listener.name.a.ssl.keystore.locatio": "x"},
            "did you mean listener.name.a.ssl.keystore.location?",
        ),
    ],
)
def test_a_fault_is_one_line_that_names_the_setting(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig(given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# config/server.properties of Apache Kafka 4, and what its comments suggest.
STOCK = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def stock() -> dict[str, str]:
    return dict(line.split("=", 1) for line in STOCK.split())


def test_a_stock_server_properties_is_taken_with_a_note_for_each_reason() -> None:
    config = BrokerConfig(stock())
    quorum, threads = config.notes
    assert quorum.startswith(
        "No effect: process.roles, controller.quorum.bootstrap.servers, controller.listener.names"
    )
    assert threads.startswith(
        "No effect: num.network.threads, num.io.threads, num.recovery.threads.per.data.dir ("
    )


def test_a_controller_listener_is_not_for_clients() -> None:
    config = BrokerConfig(stock())
    assert [str(each) for each in config.endpoints] == ["PLAINTEXT://:9092"]
    assert [str(each) for each in config.advertised_endpoints] == ["PLAINTEXT://localhost:9092"]
    alone = {"listeners": "Controller://:9093", "controller.listener.names": "CONTROLLER"}
    with pytest.raises(ConfigError, match=r"All are in controller\.listener\.names"):
        BrokerConfig(alone)


def test_a_note_has_no_values() -> None:
    config = BrokerConfig({"listener.name.plaintext.password.encoder.secret": "hidden"})
    (note,) = config.notes
    assert "password.encoder.secret" in note
    assert "hidden" not in note


def test_dynamic_settings_take_their_turn() -> None:
    config = BrokerConfig({"log.retention.ms": "1"})
    assert config.reconfigure({"log.retention.ms": "2"}, {}).changed == ("log.retention.ms",)
    assert config.log_retention_ms == 2
    config.reconfigure({"log.retention.ms": "2"}, {"log.retention.ms": "3"})
    assert config.log_retention_ms == 3
    version = config.version
    assert config.reconfigure({"log.retention.ms": "2"}, {"log.retention.ms": "3"}) == ((), ())
    assert config.version == version
    config.reconfigure({}, {})
    assert config.log_retention_ms == 1


def test_a_bad_dynamic_setting_is_ignored_and_the_others_apply() -> None:
    config = BrokerConfig()
    good = {"message.max.bytes": "5", "num.io.threads": "3", "a.plugin's.setting": "x"}
    bad = {"log.segment.bytes": "0", "num.partitions": "7", "log.cleaner.threads": "many"}
    secured = {"listener.name.external.ssl.keystore.location": "/k"}
    done = config.reconfigure(good | bad, secured)
    assert done.changed == ("message.max.bytes",)
    assert config.cluster_dynamic == good
    assert config.broker_dynamic == {}
    for said, name in zip(done.ignored, (*bad, *secured), strict=True):
        assert name in said


LAGS = ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms")


@pytest.mark.parametrize(
    ("given", "cluster", "broker", "lags"),
    [
        ({LAGS[0]: "9"}, {LAGS[1]: "8"}, {}, (9, LONG_MAX)),
        # Each alone is in conflict with the static one, both together are not.
        ({LAGS[1]: "8"}, {LAGS[0]: "9", LAGS[1]: "10"}, {}, (9, 10)),
        ({}, {LAGS[0]: "9", LAGS[1]: "8"}, {}, (9, LONG_MAX)),
        ({LAGS[0]: "9"}, {LAGS[1]: "20"}, {LAGS[1]: "8"}, (9, 20)),
    ],
)
def test_a_dynamic_setting_in_conflict_is_ignored_and_the_others_apply(
    given: dict[str, str],
    cluster: dict[str, str],
    broker: dict[str, str],
    lags: tuple[int, int],
) -> None:
    config = BrokerConfig(given)
    done = config.reconfigure({"message.max.bytes": "5", **cluster}, broker)
    assert config.message_max_bytes == 5
    assert (
        config.log_cleaner_min_compaction_lag_ms,
        config.log_cleaner_max_compaction_lag_ms,
    ) == lags
    in_force = {**config.cluster_dynamic, **config.broker_dynamic}
    count = len(cluster) + len(broker) + 1
    assert len(in_force) + len(done.ignored) == count
    assert all("must not be above" in each for each in done.ignored)


def test_limits_by_host_follow_dynamic_changes() -> None:
    config = BrokerConfig({"max.connections.per.ip.overrides": "127.0.0.1:5, [::1]:6"})
    limits = config.connection_limits()
    assert limits == {"127.0.0.1": 5, "::1": 6}
    config.reconfigure({"max.connections.per.ip.overrides": "127.0.0.1:7"}, {})
    assert limits == {"127.0.0.1": 7}


def test_only_hosts_with_limits_of_their_own() -> None:
    given = {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "::1:5,a-b.c:6"}
    assert BrokerConfig(given).connection_limits() == {"::1": 5, "a-b.c": 6}


@pytest.mark.parametrize(
    "given",
    [
        {"log.retention.ms": "-1", "log.retention.minutes": "0", "log.retention.hours": "0"},
        {"log.retention.minutes": "5", "log.retention.hours": "0"},
    ],
)
def test_a_retention_time_that_another_overrides_is_not_checked(given: dict[str, str]) -> None:
    assert BrokerConfig(given).log_retention_hours == 0


def test_a_retention_of_nothing_is_refused_while_running() -> None:
    (ignored,) = BrokerConfig().reconfigure({"log.retention.ms": "0"}, {}).ignored
    assert "unlimited (-1) or at least 1" in ignored


def test_what_may_change_while_running() -> None:
    check_dynamic({"log.retention.ms": "5"}, per_broker=False)
    with pytest.raises(ConfigError, match=r"dynamically: \[num\.partitions, queued\.max"):
        check_dynamic({"num.partitions": "5", "queued.max.requests": "1"}, per_broker=True)
    check_dynamic({"num.io.threads": "1", "metric.reporters": ""}, per_broker=False)
    kerberos = {"sasl.kerberos.min.time.before.relogin": "58000"}  # no listener takes Kerberos
    check_dynamic(kerberos, per_broker=True)
    with pytest.raises(ConfigError, match="broker id must be specified"):
        check_dynamic(kerberos, per_broker=False)
    with pytest.raises(ConfigError, match=r"num\.io\.threads: Not a number of type INT"):
        check_dynamic({"num.io.threads": "many"}, per_broker=False)
    check_dynamic({"a.plugin's.setting": "5"}, per_broker=False)
    with pytest.raises(ConfigError, match="Not a number of type LONG"):
        check_dynamic({"log.retention.ms": "soon"}, per_broker=False)


def test_broker_id_is_the_older_name() -> None:
    assert BrokerConfig({"broker.id": "7"}).id == 7
    assert BrokerConfig({"node.id": "8"}).id == 8


def test_a_broker_numbered_by_broker_id_alone_takes_dynamic_settings() -> None:
    config = BrokerConfig({"broker.id": "0"})
    assert config.reconfigure({"log.retention.ms": "2"}, {}).changed == ("log.retention.ms",)
    assert config.id == 0


def test_brokers_reach_each_other_on_the_first_listener_or_the_named_one() -> None:
    listeners = {
        "listeners": "CLIENTS://:1,BROKERS://:2",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    }
    assert BrokerConfig(listeners).inter_broker_listener == "CLIENTS"
    named = {**listeners, "inter.broker.listener.name": "brokers"}
    assert BrokerConfig(named).inter_broker_listener == "BROKERS"
