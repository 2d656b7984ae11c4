from ottla.config.broker import BrokerConfig
from ottla.config.default import log_config, topic_config
from ottla.log.config import LogConfig


def test_the_defaults_are_those_of_the_log() -> None:
    assert log_config({}, BrokerConfig()) == LogConfig()


def test_every_field_of_the_log_comes_from_its_setting() -> None:
    config = log_config(
        {
            "segment.bytes": "2000000",
            "segment.ms": "2",
            "segment.jitter.ms": "3",
            "retention.bytes": "4",
            "retention.ms": "5",
            "index.interval.bytes": "6",
            "segment.index.bytes": "7",
            "max.message.bytes": "8",
            "flush.messages": "9",
            "flush.ms": "10",
            "cleanup.policy": "compact",
            "min.compaction.lag.ms": "11",
            "max.compaction.lag.ms": "12",
            "delete.retention.ms": "13",
            "min.cleanable.dirty.ratio": "0.25",
            "compression.type": "gzip",
            "message.timestamp.type": "LogAppendTime",
            "message.timestamp.before.max.ms": "14",
            "message.timestamp.after.max.ms": "15",
            "file.delete.delay.ms": "16",
            "preallocate": "true",
        },
        BrokerConfig(),
    )
    assert (config.segment_bytes, config.segment_ms, config.segment_jitter_ms) == (2_000_000, 2, 3)
    assert (config.retention_bytes, config.retention_ms) == (4, 5)
    assert (config.index_interval_bytes, config.segment_index_bytes) == (6, 7)
    assert (config.max_message_bytes, config.flush_messages, config.flush_ms) == (8, 9, 10)
    assert (config.cleanup_compact, config.cleanup_delete) == (True, False)
    assert (config.min_compaction_lag_ms, config.max_compaction_lag_ms) == (11, 12)
    assert (config.delete_retention_ms, config.min_cleanable_dirty_ratio) == (13, 0.25)
    assert (config.compression_type, config.timestamp_type) == ("gzip", "LogAppendTime")
    assert (config.timestamp_before_max_ms, config.timestamp_after_max_ms) == (14, 15)
    assert (config.file_delete_delay_ms, config.preallocate) == (16, True)


def test_internal_segment_bytes_has_no_lower_bound() -> None:
    assert log_config({"internal.segment.bytes": "100"}, BrokerConfig()).segment_bytes == 100


def test_equal_topics_share_one_object_until_the_broker_changes() -> None:
    broker = BrokerConfig()
    first = log_config({"retention.ms": "5"}, broker)
    assert log_config({"retention.ms": "5"}, broker) is first
    assert topic_config({}, broker) is topic_config({}, broker)
    broker.reconfigure({"log.segment.bytes": "3000000"}, {})
    assert log_config({"retention.ms": "5"}, broker).segment_bytes == 3_000_000
    assert log_config({"retention.ms": "5"}, BrokerConfig()).segment_bytes == 1 << 30


def test_a_stored_override_that_cannot_be_used_is_ignored() -> None:
    overrides = {"retention.ms": "x", "min.insync.replicas": "2", "nonsense": "1"}
    config = topic_config(overrides, BrokerConfig())
    assert config.retention_ms == 604_800_000
    assert config.min_insync_replicas == 2
    assert config.overrides == overrides
    assert len(config.ignored) == 2
    for name in ("retention.ms", "nonsense"):
        assert name in "".join(config.ignored)


def test_what_only_kafka_3_has_is_no_error() -> None:
    removed = {"message.format.version": "2.8", "message.downconversion.enable": "false"}
    config = topic_config({"segment.bytes": "3000", **removed}, BrokerConfig())
    assert config.ignored == ()
    assert log_config({"segment.bytes": "3000", **removed}, BrokerConfig()).segment_bytes == 3000
    assert len(topic_config({"segment.bytes": "13"}, BrokerConfig()).ignored) == 1
