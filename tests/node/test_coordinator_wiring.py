from ottla.config import BrokerConfig
from ottla.node.coordinator_wiring import group_settings


def test_group_settings_come_from_the_broker() -> None:
    settings = group_settings(
        BrokerConfig({"offsets.retention.minutes": "3", "group.max.size": "7"})
    )
    assert settings.offsets_retention_ms == 180_000
    assert settings.max_size == 7
