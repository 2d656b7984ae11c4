"""Settings of the server itself: identity, listeners, connections, and how topics come to be."""

from __future__ import annotations

from ottla.config.setting import (
    Settings,
    Update,
    boolean,
    integer,
    long,
    optional_string,
    optional_words,
    short,
    string,
    words,
)
from ottla.config.validator import at_least, between, gzip_level, host_and_port, one_of
from ottla.config.value import INT_MAX

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


class ListenerSettings(Settings):
    """Who this broker is and where clients reach it."""

    node_id = integer(
        "node.id",
        1,
        "Number of this broker, unique in its cluster. broker.id is its older name.",
        at_least(0),
        kafka_default="(none: it must be given)",
        why="One broker alone needs no numbering by hand; 1 is what Kafka's sample file has.",
    )
    broker_id = integer(
        "broker.id", -1, "Older name of node.id; -1 means that node.id counts.", at_least(-1)
    )
    broker_rack = optional_string(
        "broker.rack", "Rack of this broker. Clients see it in metadata (KIP-36, KIP-392)."
    )
    listeners = words(
        "listeners",
        ("PLAINTEXT://127.0.0.1:9092",),
        "Addresses to listen on, as NAME://HOST:PORT. An empty host or 0.0.0.0 means every "
        "interface, port 0 any free port.",
        kafka_default="PLAINTEXT://:9092",
        why="Nobody is asked for a password yet, so other machines are let in only when told so.",
    )
    advertised_listeners = optional_words(
        "advertised.listeners",
        "Addresses that clients are told to connect to, by listener name. Without one, the "
        "address of the listener; where that is every interface, the address on which the client "
        "came.",
    )
    listener_security_protocol_map = string(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Which security protocol each listener name speaks. This broker speaks PLAINTEXT.",
    )


class ConnectionSettings(Settings):
    """Limits of connections and requests."""

    max_connections = integer(
        "max.connections",
        INT_MAX,
        "Connections open at a time, all listeners together. Above it, new ones wait.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    )
    max_connections_per_ip = integer(
        "max.connections.per.ip",
        INT_MAX,
        "Connections open at a time from one address. Further ones are closed at once.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    )
    max_connections_per_ip_overrides = string(
        "max.connections.per.ip.overrides",
        "",
        "Other limits for some addresses, as host:number separated by commas.",
        update=Update.CLUSTER_WIDE,
    )
    connections_max_idle_ms = long(
        "connections.max.idle.ms",
        600_000,
        "A connection without a request for this long is closed.",
    )
    socket_request_max_bytes = integer(
        "socket.request.max.bytes",
        104_857_600,
        "Largest request in bytes. A peer that announces more is disconnected.",
        at_least(1),
    )
    socket_send_buffer_bytes = integer(
        "socket.send.buffer.bytes",
        -1,
        "SO_SNDBUF of a connection; -1 leaves it to the system.",
        at_least(-1),
        kafka_default="102400",
        why="The system sizes the buffer by what the connection needs.",
    )
    socket_receive_buffer_bytes = integer(
        "socket.receive.buffer.bytes",
        -1,
        "SO_RCVBUF of a connection; -1 leaves it to the system.",
        at_least(-1),
        kafka_default="102400",
        why="The system sizes the buffer by what the connection needs.",
    )
    socket_listen_backlog_size = integer(
        "socket.listen.backlog.size",
        1024,
        "Connections that the system holds until they are accepted.",
        at_least(1),
        kafka_default="50",
        why="A connection that finds the queue full waits a second before it is tried again.",
    )
    fetch_max_bytes = integer(
        "fetch.max.bytes",
        57_671_680,
        "Most bytes in one fetch response; the first batch is returned whole all the same.",
        at_least(1024),
    )
    max_incremental_fetch_session_cache_slots = integer(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "Fetch sessions kept at a time (KIP-227).",
        at_least(0),
    )
    max_request_partition_size_limit = integer(
        "max.request.partition.size.limit",
        2000,
        "Most partitions in one DescribeTopicPartitions response (KIP-966).",
        at_least(1),
    )


class TopicCreationSettings(Settings):
    """How topics are created and deleted, and what replicas they have."""

    num_partitions = integer(
        "num.partitions",
        1,
        "Partitions of a topic whose creator does not say how many.",
        at_least(1),
    )
    default_replication_factor = integer(
        "default.replication.factor",
        1,
        "Replicas of a topic whose creator does not say how many.",
        at_least(1),
    )
    auto_create_topics_enable = boolean(
        "auto.create.topics.enable",
        True,
        "Create an unknown topic when a client that allows it asks for its metadata.",
    )
    delete_topic_enable = boolean(
        "delete.topic.enable",
        True,
        "Allow topics to be deleted; false answers TOPIC_DELETION_DISABLED.",
    )
    min_insync_replicas = integer(
        "min.insync.replicas",
        1,
        "Replicas that must have a record before a produce with acks=all is acknowledged.",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    )
    unclean_leader_election_enable = boolean(
        "unclean.leader.election.enable",
        False,
        "Let a replica that is not in sync lead when no other lives, at the price of lost records.",
        update=Update.CLUSTER_WIDE,
    )
    message_max_bytes = integer(
        "message.max.bytes",
        1_048_588,
        "Largest record batch in bytes, after compression.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    )
    compression_type = string(
        "compression.type",
        "producer",
        "How batches are stored: as the producer sent them, or compressed anew by the broker.",
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


class ProducerSettings(Settings):
    """What is remembered of idempotent producers."""

    producer_id_expiration_ms = integer(
        "producer.id.expiration.ms",
        86_400_000,
        "A partition forgets a producer id that has not written for this long (KIP-360).",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    )
    producer_id_expiration_check_interval_ms = integer(
        "producer.id.expiration.check.interval.ms",
        600_000,
        "How often partitions look for producer ids to forget.",
        at_least(1),
        internal=True,
    )


class GroupSettings(Settings):
    """Consumer groups and the topic that keeps their offsets."""

    group_initial_rebalance_delay_ms = integer(
        "group.initial.rebalance.delay.ms",
        100,
        "How long the first rebalance of an empty group waits for more members.",
        at_least(0),
        kafka_default="3000",
        why="A first consumer starts almost at once, and those that start with it join the same "
        "rebalance; with 0 the second waits for the first one's next heartbeat (3 s).",
    )
    group_min_session_timeout_ms = integer(
        "group.min.session.timeout.ms", 6000, "Shortest session time-out that a member may ask for."
    )
    group_max_session_timeout_ms = integer(
        "group.max.session.timeout.ms",
        1_800_000,
        "Longest session time-out that a member may ask for.",
    )
    group_max_size = integer("group.max.size", INT_MAX, "Most members of one group.", at_least(1))
    offset_metadata_max_bytes = integer(
        "offset.metadata.max.bytes",
        4096,
        "Longest text that may be committed beside an offset.",
        at_least(0),
    )
    offsets_commit_timeout_ms = integer(
        "offsets.commit.timeout.ms",
        5000,
        "An offset commit that is not replicated within this time is answered with an error.",
        at_least(1),
    )
    offsets_retention_minutes = integer(
        "offsets.retention.minutes",
        10_080,
        "Offsets of a group without members are forgotten after this time (KIP-211).",
        at_least(1),
    )
    offsets_retention_check_interval_ms = long(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often offsets are looked through for expired ones.",
        at_least(1),
    )
    offsets_topic_num_partitions = integer(
        "offsets.topic.num.partitions",
        50,
        "Partitions of __consumer_offsets; not to be changed once the topic exists.",
        at_least(1),
    )
    offsets_topic_replication_factor = short(
        "offsets.topic.replication.factor",
        -1,
        "Replicas of __consumer_offsets. -1 means three, or as many as the cluster has brokers, "
        "alive or not, when the topic is made; it is made once that many are alive.",
        at_least(-1),
        kafka_default="3",
        why="One broker cannot hold three, and three brokers should; with -1 both work unasked.",
    )
    offsets_topic_segment_bytes = integer(
        "offsets.topic.segment.bytes",
        104_857_600,
        "Segment size of __consumer_offsets.",
        at_least(1),
    )


class OwnSettings(Settings):
    """Settings that Kafka does not have."""

    ottla_journey_enable = boolean(
        "ottla.journey.enable",
        True,
        "Keep timelines beside the segments, from which the journey of a message is told.",
    )
    ottla_metrics_listener = optional_string(
        "ottla.metrics.listener",
        "HOST:PORT on which /metrics answers Prometheus; without it there are no metrics.",
        host_and_port(),
    )
