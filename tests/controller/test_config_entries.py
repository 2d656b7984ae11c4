from ottla.config.broker import BrokerConfig
from ottla.config.topic import TopicConfig
from ottla.config.value import ConfigType
from ottla.controller.config_entries import (
    ConfigEntry,
    ConfigSynonym,
    Source,
    broker_entries,
    cluster_entries,
    group_entries,
    topic_entries,
)

INTERVAL = "streams.task.offset.interval.ms"


def by_name(entries: tuple[ConfigEntry, ...]) -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in entries}


def test_a_topic_shows_every_setting_with_its_source() -> None:
    entries = by_name(topic_entries({"retention.ms": "5"}, BrokerConfig()))
    assert set(entries) == set(TopicConfig.definitions) - {"internal.segment.bytes"}
    own = entries["retention.ms"]
    assert (own.value, own.source, own.kind) == ("5", Source.TOPIC, ConfigType.LONG)
    assert own.synonyms == (
        ConfigSynonym("retention.ms", "5", Source.TOPIC),
        ConfigSynonym("log.retention.hours", "168", Source.DEFAULT),
    )
    default = entries["max.message.bytes"]
    assert (default.value, default.source) == ("1048588", Source.DEFAULT)
    assert default.synonyms == (ConfigSynonym("message.max.bytes", "1048588", Source.DEFAULT),)
    assert default.documentation
    assert entries["leader.replication.throttled.replicas"].synonyms == ()


def test_a_topic_shows_the_defaults_of_its_broker() -> None:
    broker = BrokerConfig({"log.retention.hours": "2", "message.max.bytes": "7"})
    entries = by_name(topic_entries({}, broker))
    assert entries["retention.ms"].value == "7200000"
    assert entries["retention.ms"].source is Source.STATIC_BROKER
    broker.reconfigure({"message.max.bytes": "8"}, {"message.max.bytes": "9"})
    entry = by_name(topic_entries({}, broker))["max.message.bytes"]
    assert entry.value == "9"
    assert [(each.value, each.source) for each in entry.synonyms] == [
        ("9", Source.DYNAMIC_BROKER),
        ("8", Source.DYNAMIC_DEFAULT_BROKER),
        ("7", Source.STATIC_BROKER),
        ("1048588", Source.DEFAULT),
    ]


def test_keys_select_settings() -> None:
    chosen = topic_entries({}, BrokerConfig(), ["retention.ms", "none"])
    assert [entry.name for entry in chosen] == ["retention.ms"]
    assert len(topic_entries({}, BrokerConfig(), [])) > 30
    assert [entry.name for entry in broker_entries(BrokerConfig(), ["node.id"])] == ["node.id"]


def test_a_topic_shows_an_internal_setting_only_if_it_is_set() -> None:
    entries = by_name(topic_entries({"internal.segment.bytes": "9"}, BrokerConfig()))
    assert entries["internal.segment.bytes"].value == "9"


def test_a_group_shows_what_apache_kafka_shows() -> None:
    entries = by_name(group_entries({"share.delivery.count.limit": "7"}, BrokerConfig()))
    limit = entries["share.delivery.count.limit"]
    assert (limit.value, limit.source) == ("7", Source.GROUP)
    assert limit.synonyms == (
        ConfigSynonym("share.delivery.count.limit", "7", Source.GROUP),
        ConfigSynonym("group.share.delivery.count.limit", "5", Source.DEFAULT),
    )
    assert not entries.keys() & {"streams.acceptable.recovery.lag", INTERVAL}
    assert by_name(group_entries({INTERVAL: "20000"}, BrokerConfig()))[INTERVAL].value == "20000"
    for name, of_broker, value in (
        ("streams.assignor.name", "group.streams.assignors", "sticky"),
        (
            "streams.rack.aware.assignment.tags",
            "group.streams.rack.aware.assignment.tags",
            "",
        ),
    ):
        entry = entries[name]
        assert (entry.value, entry.source) == (value, Source.DEFAULT)
        assert entry.synonyms == (ConfigSynonym(of_broker, value, Source.DEFAULT),)


def test_a_broker_shows_what_is_in_force() -> None:
    broker = BrokerConfig({"num.partitions": "4", "num.io.threads": "8"})
    broker.reconfigure({"log.retention.ms": "5"}, {})
    entries = by_name(broker_entries(broker))
    static = entries["num.partitions"]
    assert (static.value, static.source, static.read_only) == ("4", Source.STATIC_BROKER, True)
    dynamic = entries["log.retention.ms"]
    assert (dynamic.value, dynamic.source) == ("5", Source.DYNAMIC_DEFAULT_BROKER)
    assert not dynamic.read_only
    hours = entries["log.retention.hours"]
    assert (hours.value, hours.source) == ("168", Source.DEFAULT)
    assert "log.initial.task.delay.ms" not in entries
    assert entries["advertised.listeners"].value is None


def test_a_setting_without_effect_is_shown_without_its_value() -> None:
    entry = by_name(broker_entries(BrokerConfig({"password.encoder.secret": "secret"})))[
        "password.encoder.secret"
    ]
    assert entry.value is None
    assert entry.sensitive
    assert (entry.documentation or "").startswith("No effect: ")


def test_a_dynamic_setting_without_effect_is_shown_with_its_value() -> None:
    broker = BrokerConfig({"num.io.threads": "8"})
    broker.reconfigure(
        {"log.cleaner.threads": "2", "plugin.password": "x"}, {"num.io.threads": "9"}
    )
    entries = by_name(broker_entries(broker))
    threads = entries["num.io.threads"]
    assert (threads.value, threads.source) == ("9", Source.DYNAMIC_BROKER)
    assert threads.kind is ConfigType.INT
    assert not threads.read_only
    assert (threads.documentation or "").startswith("No effect: ")
    assert entries["log.cleaner.threads"].source is Source.DYNAMIC_DEFAULT_BROKER
    assert entries["plugin.password"].sensitive
    stored = {"log.cleaner.threads": "2", "listener.name.x.ssl.key.password": "secret"}
    shown = by_name(cluster_entries(stored))
    assert shown["log.cleaner.threads"].value == "2"
    assert shown["listener.name.x.ssl.key.password"].value is None


def test_the_default_of_all_brokers_shows_only_what_was_set() -> None:
    entries = cluster_entries({"log.retention.ms": "5"})
    assert [(entry.name, entry.value, entry.source) for entry in entries] == [
        ("log.retention.ms", "5", Source.DYNAMIC_DEFAULT_BROKER)
    ]
    assert cluster_entries({}) == ()
