import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.error import ConfigError
from ottla.config.synonym import topic_defaults
from ottla.config.topic import TopicConfig, check_topic_overrides

DEFAULTS = topic_defaults(BrokerConfig())


def test_overrides_come_before_the_brokers_defaults() -> None:
    defaults = topic_defaults(BrokerConfig({"min.insync.replicas": "2", "compression.type": "lz4"}))
    config = TopicConfig.from_texts(defaults, {"compression.type": "zstd"})
    assert config.min_insync_replicas == 2
    assert config.compression_type == "zstd"
    assert config.compression_level == 3
    assert config.overrides == {"compression.type": "zstd"}
    assert TopicConfig.from_texts({}, {}).compression_level is None


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"cleanup.policy": "compact,delete"},
        {"cleanup.policy": ""},
        {"compression.gzip.level": "9"},
        {"internal.segment.bytes": "1000"},
        {"remote.storage.enable": "false", "local.retention.ms": "-2"},
        {"leader.replication.throttled.replicas": "0:1,1:2"},
    ],
)
def test_accepts(overrides: dict[str, str]) -> None:
    check_topic_overrides(DEFAULTS, overrides)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"retention.m": "1"},
            "Unknown topic config name: retention.m; did you mean retention.ms?",
        ),
        ({"qqqqqqqq": "1"}, "Unknown topic config name: qqqqqqqq"),
        (
            {"segment.bytes": "12"},
            "Invalid value 12 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            {"cleanup.policy": "keep"},
            "Invalid value keep for configuration cleanup.policy: "
            "String must be one of: compact, delete",
        ),
        (
            {"compression.type": "none"},
            "Invalid value none for configuration compression.type: String must be one of: "
            "uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"},
            "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (8)",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
    ],
)
def test_refusals_have_kafkas_messages(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_topic_overrides(DEFAULTS, overrides)
    assert str(caught.value).endswith(message)
