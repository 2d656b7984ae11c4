"""Settings of the server: identity, listeners, connections, and creation of topics."""

from __future__ import annotations

from ottla.config.broker_websocket import WebSocketSettings
from ottla.config.setting import (
    Settings,
    Update,
    boolean,
    integer,
    long,
    optional_password,
    optional_string,
    optional_words,
    short,
    string,
    words,
)
from ottla.config.validator import at_least, between, gzip_level, host_and_port, one_of, only
from ottla.config.value import INT_MAX

MAX_RECORD_BYTES = 2**31 - 1 - 8
"""The largest array of Java: no limit."""
ONE_DECOMPRESSED_SIZE = (
    "Records have no limit of their own once decompressed: a batch may have 256 MiB. "
    "Only the default is allowed"
)
COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


class ListenerSettings(Settings):
    """The broker's identity, and the addresses that clients use."""

    node_id = integer(
        "node.id",
        1,
        "Id of this broker, unique in its cluster. broker.id is the older name.",
        at_least(0),
        kafka_default="(none: required)",
        why="A single broker needs no id of its own choice; 1 is the id in Kafka's sample file.",
    )
    broker_id = integer("broker.id", -1, "Older name of node.id; -1: use node.id.", at_least(-1))
    broker_rack = optional_string(
        "broker.rack", "Rack of this broker. Clients see it in metadata (KIP-36, KIP-392)."
    )
    listeners = words(
        "listeners",
        ("PLAINTEXT://127.0.0.1:9092",),
        "Addresses to listen on, as NAME://HOST:PORT. An empty host or 0.0.0.0 means every "
        "interface, port 0 any free port.",
        kafka_default="PLAINTEXT://:9092",
        why="It asks nobody who they are, so other machines get access only if you allow it.",
    )
    advertised_listeners = optional_words(
        "advertised.listeners",
        "Addresses that clients connect to, by listener name. Default: the "
        "address of the listener; if that is every interface, the address to which the client "
        "came.",
    )
    listener_security_protocol_map = string(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The security protocol of each listener: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    )


class ConnectionSettings(Settings):
    """Limits of connections and requests."""

    max_connections = integer(
        "max.connections",
        INT_MAX,
        "Maximum number of open connections on all listeners, and on each. Further connections "
        "wait. Those on the listener of the other brokers are accepted beyond it, and the ones "
        "that were idle longest on other listeners are closed for them (KIP-402).",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    )
    max_connection_creation_rate = integer(
        "max.connection.creation.rate",
        INT_MAX,
        "Maximum number of new connections per second on all listeners, and on each. Further "
        "connections wait. Only the listener's own limit applies to the listener of the other "
        "brokers (KIP-612).",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    )
    max_connections_per_ip = integer(
        "max.connections.per.ip",
        INT_MAX,
        "Maximum number of open connections per address. Further connections are closed.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    )
    max_connections_per_ip_overrides = string(
        "max.connections.per.ip.overrides",
        "",
        "Different limits for some addresses: host:number, separated by commas.",
        update=Update.CLUSTER_WIDE,
    )
    connections_max_idle_ms = long(
        "connections.max.idle.ms",
        600_000,
        "Connections without a request for this long are closed. Negative: never.",
    )
    socket_request_max_bytes = integer(
        "socket.request.max.bytes",
        104_857_600,
        "Maximum size of a request in bytes. A client that announces more is disconnected.",
        at_least(1),
    )
    queued_max_request_bytes = long(
        "queued.max.request.bytes",
        -1,
        "Maximum bytes of the requests of all connections that are not answered yet. Beyond it, "
        "connections end: those that stall, then those that hold most. "
        "-1: a quarter of the machine's memory.",
    )
    socket_send_buffer_bytes = integer(
        "socket.send.buffer.bytes",
        -1,
        "SO_SNDBUF of a connection; -1: the system decides.",
        at_least(-1),
        kafka_default="102400",
        why="The system adapts the buffer's size to the connection.",
    )
    socket_receive_buffer_bytes = integer(
        "socket.receive.buffer.bytes",
        -1,
        "SO_RCVBUF of a connection; -1: the system decides.",
        at_least(-1),
        kafka_default="102400",
        why="The system adapts the buffer's size to the connection.",
    )
    socket_listen_backlog_size = integer(
        "socket.listen.backlog.size",
        1024,
        "Maximum number of connections that wait to be accepted.",
        at_least(1),
        kafka_default="50",
        why="If the queue is full, the client retries to connect only after a second.",
    )
    fetch_max_bytes = integer(
        "fetch.max.bytes",
        57_671_680,
        "Maximum bytes in a fetch response. A larger first batch is returned whole.",
        at_least(1024),
    )
    max_incremental_fetch_session_cache_slots = integer(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "Maximum number of fetch sessions (KIP-227).",
        at_least(0),
    )
    max_request_partition_size_limit = integer(
        "max.request.partition.size.limit",
        2000,
        "Maximum number of partitions in a DescribeTopicPartitions response (KIP-966).",
        at_least(1),
    )


class TopicCreationSettings(Settings):
    """How topics are created and deleted, and which replicas they get."""

    num_partitions = integer(
        "num.partitions",
        1,
        "Default number of partitions of new topics.",
        at_least(1),
    )
    default_replication_factor = integer(
        "default.replication.factor",
        1,
        "Default number of replicas of new topics.",
        at_least(1),
    )
    auto_create_topics_enable = boolean(
        "auto.create.topics.enable",
        True,
        "Create unknown topics on metadata requests of clients that allow it.",
    )
    delete_topic_enable = boolean(
        "delete.topic.enable",
        True,
        "Allow deleting topics; false returns TOPIC_DELETION_DISABLED.",
    )
    min_insync_replicas = integer(
        "min.insync.replicas",
        1,
        "Number of in-sync replicas that must have a record before acks=all is acknowledged.",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    )
    unclean_leader_election_enable = boolean(
        "unclean.leader.election.enable",
        False,
        "Elect a replica that is not in sync if no other is alive. This can lose records.",
        update=Update.CLUSTER_WIDE,
    )
    message_max_bytes = integer(
        "message.max.bytes",
        1_048_588,
        "Maximum size of a record batch in bytes, after compression.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    )
    compression_type = string(
        "compression.type",
        "producer",
        "Compression of stored batches: as sent by the producer, or recompressed by the broker.",
        one_of(*COMPRESSION_TYPES),
        update=Update.CLUSTER_WIDE,
    )
    compression_gzip_level = integer(
        "compression.gzip.level",
        -1,
        "Level for compression.type=gzip.",
        gzip_level(),
        update=Update.CLUSTER_WIDE,
    )
    compression_lz4_level = integer(
        "compression.lz4.level",
        9,
        "Level for compression.type=lz4.",
        between(1, 17),
        update=Update.CLUSTER_WIDE,
    )
    compression_zstd_level = integer(
        "compression.zstd.level",
        3,
        "Level for compression.type=zstd.",
        between(-131_072, 22),
        update=Update.CLUSTER_WIDE,
    )
    max_decompressed_message_bytes = integer(
        "max.decompressed.message.bytes",
        MAX_RECORD_BYTES,
        "Maximum size of a record in bytes, once decompressed.",
        only(MAX_RECORD_BYTES, ONE_DECOMPRESSED_SIZE),
        update=Update.CLUSTER_WIDE,
    )


class ProducerSettings(Settings):
    """The state of idempotent producers."""

    producer_id_expiration_ms = integer(
        "producer.id.expiration.ms",
        86_400_000,
        "A partition expires a producer id that has not written for this long (KIP-360).",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    )
    producer_id_expiration_check_interval_ms = integer(
        "producer.id.expiration.check.interval.ms",
        600_000,
        "How often partitions check for expired producer ids.",
        at_least(1),
        internal=True,
    )


class GroupSettings(Settings):
    """Consumer groups and the topic that stores their offsets."""

    group_initial_rebalance_delay_ms = integer(
        "group.initial.rebalance.delay.ms",
        100,
        "How long the first rebalance of an empty group waits for more members.",
        at_least(0),
        kafka_default="3000",
        why="The first consumer starts almost at once, and others that start with it join the same "
        "rebalance. With 0, the second would wait for the first one's next heartbeat (3 s).",
    )
    group_min_session_timeout_ms = integer(
        "group.min.session.timeout.ms", 6000, "Minimum session timeout of members."
    )
    group_max_session_timeout_ms = integer(
        "group.max.session.timeout.ms",
        1_800_000,
        "Maximum session timeout of members.",
    )
    group_max_size = integer(
        "group.max.size", INT_MAX, "Maximum number of members of a group.", at_least(1)
    )
    offset_metadata_max_bytes = integer(
        "offset.metadata.max.bytes",
        4096,
        "Maximum size of the metadata of an offset commit.",
        at_least(0),
    )
    offsets_commit_timeout_ms = integer(
        "offsets.commit.timeout.ms",
        5000,
        "An offset commit that is not replicated within this time fails.",
        at_least(1),
    )
    offsets_retention_minutes = integer(
        "offsets.retention.minutes",
        10_080,
        "Offsets of a group without members expire after this time (KIP-211).",
        at_least(1),
    )
    offsets_retention_check_interval_ms = long(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often the coordinator checks for expired offsets.",
        at_least(1),
    )
    offsets_topic_num_partitions = integer(
        "offsets.topic.num.partitions",
        50,
        "Number of partitions of __consumer_offsets. Do not change it once the topic exists.",
        at_least(1),
    )
    offsets_topic_replication_factor = short(
        "offsets.topic.replication.factor",
        -1,
        "Number of replicas of __consumer_offsets. -1: three, or the number of brokers "
        "if there are fewer, alive or not. The topic is created once that many are alive.",
        at_least(-1),
        kafka_default="3",
        why="One broker cannot hold three replicas, but three brokers should. -1 suits both.",
    )
    offsets_topic_segment_bytes = integer(
        "offsets.topic.segment.bytes",
        104_857_600,
        "Maximum segment size of __consumer_offsets.",
        at_least(1),
    )


class OwnSettings(WebSocketSettings):
    """Settings that Kafka does not have."""

    ottla_journey_enable = boolean(
        "ottla.journey.enable",
        True,
        "Keep timelines beside the segments, for the journeys of messages.",
    )
    ottla_first_users = optional_password(
        "ottla.first.users",
        "Users that a new cluster begins with, written as for kafka-storage --add-scram: "
        "SCRAM-SHA-256=[name=alice,password=secret]; several are separated by semicolons. Without "
        "effect once the cluster is there.",
    )
    ottla_metrics_listener = optional_string(
        "ottla.metrics.listener",
        "HOST:PORT on which /metrics serves Prometheus. Default: no metrics.",
        host_and_port(),
    )
