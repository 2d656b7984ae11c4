from ottla.config import BrokerConfig
from ottla.controller.group_settings import settings_of_group
from ottla.controller.image import NO_CONFIG, ClusterImage, ConfigImage, GroupConfigChanged
from ottla.groups.consumer.settings import ConsumerGroupSettings
from ottla.node.coordinator_wiring import (
    consumer_group_settings,
    group_settings,
    share_group_settings,
    streams_group_settings,
)


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
    image = ClusterImage("c")
    image.apply(GroupConfigChanged("own", ConfigImage({"consumer.session.timeout.ms": "50000"}, 0)))

    def settings_of(group: str) -> ConsumerGroupSettings:
        return consumer_group_settings(settings_of_group(image, config, group), config)

    settings = settings_of("other")
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (45_000, 5_000)
    assert (settings.assignment_interval_ms, settings.max_size) == (1_000, 5_000)
    config.reconfigure({"group.consumer.assignment.interval.ms": "0"}, {})
    assert settings_of("other").assignment_interval_ms == 0
    assert settings_of("own").assignment_interval_ms == 0
    assert settings_of("own").session_timeout_ms == 50_000
    assert settings_of("own") is settings_of("own")
    image.apply(GroupConfigChanged("own", NO_CONFIG))
    assert settings_of("own").session_timeout_ms == 45_000


def test_share_groups_follow_their_settings() -> None:
    config = BrokerConfig({"group.share.max.size": "7", "offsets.commit.timeout.ms": "40000"})
    image = ClusterImage("c")
    image.apply(GroupConfigChanged("own", ConfigImage({"share.session.timeout.ms": "50000"}, 0)))
    settings = share_group_settings(settings_of_group(image, config, "own"), config)
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (50_000, 5_000)
    assert (settings.assignment_interval_ms, settings.max_size) == (1_000, 7)
    assert settings.initialize_retry_interval_ms == 40_000
    other = share_group_settings(settings_of_group(image, config, "other"), config)
    assert other.session_timeout_ms == 45_000


def test_streams_groups_follow_their_settings() -> None:
    config = BrokerConfig(
        {
            "group.streams.task.offset.interval.ms": "20000",
            "group.streams.min.task.offset.interval.ms": "9000",
            "group.streams.acceptable.recovery.lag": "7",
        }
    )
    image = ClusterImage("c")
    own = ConfigImage(
        {"streams.task.offset.interval.ms": "10000", "streams.acceptable.recovery.lag": "5"}, 0
    )
    image.apply(GroupConfigChanged("own", own))
    settings = streams_group_settings(settings_of_group(image, config, "own"), config)
    assert (settings.task_offset_interval_ms, settings.num_standby_replicas) == (10_000, 0)
    other = streams_group_settings(settings_of_group(image, config, "other"), config)
    assert other.task_offset_interval_ms == 20_000
    assert (settings.acceptable_recovery_lag, other.acceptable_recovery_lag) == (5, 7)
