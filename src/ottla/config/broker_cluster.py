"""Settings of the cluster: ZooKeeper, replication, elections, controlled shutdown, throttles.

Those of ZooKeeper mode (`zookeeper.*`, `controlled.shutdown.max.retries` and its like) are Kafka
3.9's; Kafka 4 no longer has them.
"""

from __future__ import annotations

from typing import Final

from ottla.config.setting import (
    Settings,
    Update,
    boolean,
    integer,
    long,
    optional_integer,
    optional_string,
)
from ottla.config.validator import at_least, between, one_of
from ottla.config.value import LONG_MAX

RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class ZooKeeperSettings(Settings):
    """The ensemble that stores the cluster's state."""

    zookeeper_connect = optional_string(
        "zookeeper.connect",
        "HOST:PORT[,HOST:PORT...][/chroot] of the cluster's ZooKeeper ensemble. "
        "Without it, the broker runs alone and keeps its state in its data folder.",
    )
    zookeeper_session_timeout_ms = integer(
        "zookeeper.session.timeout.ms",
        18_000,
        "ZooKeeper declares a broker dead after this time without a heartbeat.",
        at_least(1),
    )
    zookeeper_connection_timeout_ms = optional_integer(
        "zookeeper.connection.timeout.ms",
        "How long a starting broker waits for ZooKeeper. Default: zookeeper.session.timeout.ms.",
        at_least(1),
    )


class ReplicationSettings(Settings):
    """How followers replicate, and when they are in sync."""

    inter_broker_listener_name = optional_string(
        "inter.broker.listener.name",
        "The listener that brokers use between them. Default: the first of listeners.",
    )
    num_replica_fetchers = integer(
        "num.replica.fetchers",
        1,
        "Number of connections for replication from each leader.",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    )
    replica_lag_time_max_ms = long(
        "replica.lag.time.max.ms",
        30_000,
        "A follower is out of sync if it has not reached the leader's log end for this long.",
        at_least(1),
    )
    replica_fetch_max_bytes = integer(
        "replica.fetch.max.bytes",
        1_048_576,
        "Maximum bytes per partition in a follower's fetch. A larger first batch is returned "
        "whole.",
        at_least(0),
    )
    replica_fetch_min_bytes = integer(
        "replica.fetch.min.bytes",
        1,
        "A follower's fetch waits for this many bytes, up to replica.fetch.wait.max.ms.",
        at_least(0),
    )
    replica_fetch_wait_max_ms = integer(
        "replica.fetch.wait.max.ms",
        500,
        "How long a follower's fetch waits for new records. Must be below replica.lag.time.max.ms.",
        at_least(0),
    )
    replica_fetch_backoff_ms = integer(
        "replica.fetch.backoff.ms",
        1000,
        "How long a follower waits before it retries a partition after an error.",
        at_least(0),
    )
    replica_fetch_response_max_bytes = integer(
        "replica.fetch.response.max.bytes",
        10_485_760,
        "Maximum bytes in the response to a follower's fetch.",
        at_least(0),
    )
    replica_socket_timeout_ms = integer(
        "replica.socket.timeout.ms",
        30_000,
        "How long a broker waits for another's response before it reconnects. Must not be below "
        "replica.fetch.wait.max.ms.",
        at_least(0),
    )
    replica_high_watermark_checkpoint_interval_ms = long(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "How often the high watermarks are written to their checkpoint file.",
        at_least(1),
    )
    replica_selector_class = optional_string(
        "replica.selector.class",
        "Which replica consumers read from. Default: the leader. With Kafka's "
        "RackAwareReplicaSelector: a replica in the consumer's rack, if there is one (KIP-392).",
        one_of("", RACK_AWARE_SELECTOR),
    )


class ThrottleSettings(Settings):
    """Limits of re-replication (KIP-73), for the throttled replicas that topics list."""

    leader_replication_throttled_rate = long(
        "leader.replication.throttled.rate",
        LONG_MAX,
        "Bytes per second that leaders on this broker send to the followers in the topic's "
        "leader.replication.throttled.replicas.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    )
    follower_replication_throttled_rate = long(
        "follower.replication.throttled.rate",
        LONG_MAX,
        "Bytes per second that followers on this broker fetch of the replicas in the topic's "
        "follower.replication.throttled.replicas.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    )
    replication_quota_window_num = integer(
        "replication.quota.window.num",
        11,
        "Number of windows over which throttled rates are measured.",
        at_least(1),
    )
    replication_quota_window_size_seconds = integer(
        "replication.quota.window.size.seconds", 1, "Length of each window.", at_least(1)
    )


class QuotaSettings(Settings):
    """How the rates of clients with quotas are measured; the quotas are kept by the cluster."""

    quota_window_num = integer(
        "quota.window.num",
        11,
        "Number of windows over which the rates of clients are measured.",
        at_least(1),
    )
    quota_window_size_seconds = integer(
        "quota.window.size.seconds", 1, "Length of each window.", at_least(1)
    )
    controller_quota_window_num = integer(
        "controller.quota.window.num",
        11,
        "Number of windows for quotas of created and deleted partitions: together they are the "
        "time for which a client may save up its quota.",
        at_least(1),
    )
    controller_quota_window_size_seconds = integer(
        "controller.quota.window.size.seconds", 1, "Length of each of these windows.", at_least(1)
    )


class LeadershipSettings(Settings):
    """Preferred leaders, and controlled shutdown."""

    auto_leader_rebalance_enable = boolean(
        "auto.leader.rebalance.enable",
        True,
        "Move leadership back to preferred leaders if too many of a broker's partitions are led by "
        "others.",
    )
    leader_imbalance_check_interval_seconds = long(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often the controller checks for such an imbalance. It checks a broker that has come "
        "back as soon as the broker is in sync.",
        at_least(1),
    )
    leader_imbalance_per_broker_percentage = integer(
        "leader.imbalance.per.broker.percentage",
        10,
        "Percentage of a broker's preferred partitions led by others above which they are moved "
        "back.",
        between(0, 100),
    )
    controlled_shutdown_enable = boolean(
        "controlled.shutdown.enable",
        True,
        "Hand leadership over to other brokers before the broker stops.",
    )
    controlled_shutdown_max_retries = integer(
        "controlled.shutdown.max.retries",
        3,
        "How often a stopping broker retries to move its leaderships.",
        at_least(0),
    )
    controlled_shutdown_retry_backoff_ms = long(
        "controlled.shutdown.retry.backoff.ms",
        5000,
        "How long it waits before each retry.",
        at_least(0),
    )
