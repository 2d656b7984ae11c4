from ottla.config import BrokerConfig
from ottla.node.coordinator_wiring import consumer_group_settings, group_settings


def test_group_settings_come_from_the_broker() -> None:
    settings = group_settings(
        BrokerConfig({"offsets.retention.minutes": "3", "group.max.size": "7"})
    )
    assert settings.offsets_retention_ms == 180_000
    assert settings.max_size == 7


def test_a_group_has_as_many_members_and_bytes_as_a_generation_may() -> None:
    settings = group_settings(BrokerConfig({"message.max.bytes": "5000"}))
    assert (settings.max_size, settings.group_metadata_max_bytes) == (5_000, 5_000)


def test_consumer_groups_follow_settings_that_change() -> None:
    config = BrokerConfig({"group.consumer.max.size": "9000000"})
    settings = consumer_group_settings(config)
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (45_000, 5_000)
    assert (settings.assignment_interval_ms, settings.max_size) == (1_000, 5_000)
    config.reconfigure({"group.consumer.assignment.interval.ms": "0"}, {})
    assert consumer_group_settings(config).assignment_interval_ms == 0
