import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.error import ConfigError
from ottla.config.group import GroupConfig, check_group_overrides, group_config
from ottla.config.group_bounds import GROUP_BOUNDS
from ottla.config.offset_reset import BY_DURATION, LATEST, OffsetReset

# GroupConfig of Apache Kafka 4.4.0, but for what it does not show (defineInternal): type,
# default, least value.
KAFKAS = {
    "consumer.session.timeout.ms": ("INT", "45000", 1),
    "consumer.heartbeat.interval.ms": ("INT", "5000", 1),
    "consumer.assignment.interval.ms": ("INT", "1000", 0),
    "share.session.timeout.ms": ("INT", "45000", 1),
    "share.heartbeat.interval.ms": ("INT", "5000", 1),
    "share.record.lock.duration.ms": ("INT", "30000", 1000),
    "share.delivery.count.limit": ("INT", "5", 2),
    "share.partition.max.record.locks": ("INT", "2000", 100),
    "share.auto.offset.reset": ("STRING", "latest", None),
    "share.isolation.level": ("STRING", "read_uncommitted", None),
    "share.renew.acknowledge.enable": ("BOOLEAN", "true", None),
    "share.assignment.interval.ms": ("INT", "1000", 0),
    "streams.session.timeout.ms": ("INT", "45000", 1),
    "streams.heartbeat.interval.ms": ("INT", "5000", 1),
    "streams.num.standby.replicas": ("INT", "0", 0),
    "streams.initial.rebalance.delay.ms": ("INT", "3000", 0),
    "streams.assignment.interval.ms": ("INT", "1000", 0),
    "streams.rack.aware.assignment.tags": ("LIST", "", None),
    "streams.assignor.name": ("STRING", None, None),
    "errors.deadletterqueue.topic.name": ("STRING", "", None),
    "errors.deadletterqueue.copy.record.enable": ("BOOLEAN", "false", None),
}

INTERNAL = ("streams.acceptable.recovery.lag", "streams.task.offset.interval.ms")
"""What Kafka does not show either."""


def test_names_types_and_defaults_are_kafkas() -> None:
    assert {
        name: (each.kind.name, each.default_text)
        for name, each in GroupConfig.definitions.items()
        if name not in INTERNAL
    } == {name: kafkas[:2] for name, kafkas in KAFKAS.items()}
    for name, (_, _, least) in KAFKAS.items():
        if least is not None:
            GroupConfig.definitions[name].parse(str(least))
            with pytest.raises(ConfigError, match="Value must be at least"):
                GroupConfig.definitions[name].parse(str(least - 1))
    assert [each for each in GROUP_BOUNDS if each not in {*KAFKAS, *INTERNAL}] == []
    assert all(GroupConfig.definitions[name].internal for name in INTERNAL)


def test_what_a_group_does_not_set_comes_from_the_broker() -> None:
    broker = BrokerConfig({"group.consumer.session.timeout.ms": "50000"})
    assert group_config(broker).consumer_session_timeout_ms == 50_000
    own = group_config(broker, {"consumer.session.timeout.ms": "46000"})
    assert own.consumer_session_timeout_ms == 46_000
    assert own.consumer_heartbeat_interval_ms == 5_000
    assert own is group_config(broker, {"consumer.session.timeout.ms": "46000"})
    broker.reconfigure({"group.share.assignment.interval.ms": "7"}, {})
    changed = group_config(broker, {"consumer.session.timeout.ms": "46000"})
    assert (changed.consumer_session_timeout_ms, changed.share_assignment_interval_ms) == (46000, 7)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"consumer.session.timeout.m": "1"}, "Unknown group config name: consumer.session"),
        (
            {"consumer.session.timeout.ms": "44999"},
            "consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            {"share.record.lock.duration.ms": "60001"},
            "share.record.lock.duration.ms must be less than or equal to "
            "group.share.max.record.lock.duration.ms",
        ),
        (
            {"streams.num.standby.replicas": "3"},
            "streams.num.standby.replicas must be less than or equal to "
            "group.streams.max.standby.replicas",
        ),
        (
            {"streams.task.offset.interval.ms": "14999"},
            "streams.task.offset.interval.ms must be greater than or equal to "
            "group.streams.min.task.offset.interval.ms",
        ),
        (
            {"share.heartbeat.interval.ms": "x"},
            "Invalid value x for configuration share.heartbeat.interval.ms: "
            "Not a number of type INT",
        ),
        (
            {"share.isolation.level": "READ_COMMITTED"},
            "Invalid value READ_COMMITTED for configuration share.isolation.level: "
            "String must be one of: read_committed, read_uncommitted",
        ),
        (
            {"share.auto.offset.reset": "by_duration:-PT1S"},
            "Invalid value by_duration:-PT1S for configuration share.auto.offset.reset: "
            "Invalid value `by_duration:-PT1S` for configuration share.auto.offset.reset. The value"
            " must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        ),
    ],
)
def test_refusals_have_kafkas_messages(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_group_overrides(BrokerConfig(), overrides)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("streams.rack.aware.assignment.tags", "zone", "replicas are not spread over tags"),
        ("streams.assignor.name", "other", "String must be one of: sticky"),
    ],
)
def test_what_ottla_does_not_have(name: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check_group_overrides(BrokerConfig(), {name: value})
    check_group_overrides(BrokerConfig(), {"streams.assignor.name": "sticky"})


def test_a_session_is_longer_than_its_heartbeat() -> None:
    broker = BrokerConfig(
        {
            "group.consumer.min.session.timeout.ms": "5000",
            "group.consumer.max.heartbeat.interval.ms": "20000",
        }
    )
    check_group_overrides(broker, {"consumer.session.timeout.ms": "5001"})
    overrides = {"consumer.session.timeout.ms": "9000", "consumer.heartbeat.interval.ms": "9000"}
    with pytest.raises(ConfigError) as caught:
        check_group_overrides(broker, overrides)
    assert str(caught.value) == (
        "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    )


def test_stored_settings_stay_within_bounds_that_were_changed_later() -> None:
    config = group_config(
        BrokerConfig({"group.share.max.delivery.count.limit": "6"}),
        {
            "share.delivery.count.limit": "9",
            "consumer.session.timeout.ms": "10",
            "share.isolation.level": "none",
            "of.another.version": "1",
        },
    )
    assert (config.share_delivery_count_limit, config.consumer_session_timeout_ms) == (6, 45_000)
    assert config.share_isolation_level == "read_uncommitted"
    assert len(config.notes) == 4


def test_what_share_groups_read() -> None:
    config = group_config(BrokerConfig())
    assert (config.offset_reset, config.reads_committed) == (OffsetReset(LATEST), False)
    config = group_config(
        BrokerConfig(),
        {
            "share.auto.offset.reset": "by_duration:PT1H30M",
            "share.isolation.level": "read_committed",
        },
    )
    assert config.offset_reset == OffsetReset(BY_DURATION, 5_400_000)
    assert config.reads_committed
