"""The request types: key, name, and the versions that Kafka 4.4 supports.

The broker advertises those that have a handler. Produce is an exception: versions 0 to 2 are
advertised but refused, or librdkafka silently stops compressing (KAFKA-18659).
"""

from typing import Final, NamedTuple


class Api(NamedTuple):
    key: int
    name: str
    """As in the protocol's message definitions, in snake case."""
    min_version: int
    max_version: int


PRODUCE: Final = 0
FETCH: Final = 1
API_VERSIONS: Final = 18
CREATE_TOPICS: Final = 19
JOURNEY: Final = 20_000
"""Ottla's own requests, far outside Kafka's range and never advertised; their bodies are JSON."""
METADATA_DELTAS: Final = 20_001
JOURNEY_GROUPS: Final = 20_002
BROKER_PROOF: Final = 20_003
GROUP_HISTORY: Final = 20_004
KEY_OFFSETS: Final = 20_005
SEGMENTS: Final = 20_006
ELECTIONS: Final = 20_007
ADD_PARTITIONS_TO_TXN: Final = 24
WRITE_TXN_MARKERS: Final = 27
ALTER_PARTITION: Final = 56
ENVELOPE: Final = 58
ALLOCATE_PRODUCER_IDS: Final = 67
CONSUMER_GROUP_DESCRIBE: Final = 69
SHARE_GROUP_HEARTBEAT: Final = 76
SHARE_GROUP_DESCRIBE: Final = 77
STREAMS_GROUP_HEARTBEAT: Final = 88
STREAMS_GROUP_DESCRIBE: Final = 89
STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: Final = 93
DESCRIBE_SHARE_GROUP_OFFSETS: Final = 90

_TABLE: Final = (
    (0, "produce", 0, 13),
    (1, "fetch", 4, 18),
    (2, "list_offsets", 1, 11),
    (3, "metadata", 0, 13),
    (8, "offset_commit", 2, 10),
    (9, "offset_fetch", 1, 10),
    (10, "find_coordinator", 0, 6),
    (11, "join_group", 0, 9),
    (12, "heartbeat", 0, 4),
    (13, "leave_group", 0, 5),
    (14, "sync_group", 0, 5),
    (15, "describe_groups", 0, 6),
    (16, "list_groups", 0, 5),
    (17, "sasl_handshake", 0, 1),
    (API_VERSIONS, "api_versions", 0, 5),
    (19, "create_topics", 2, 7),
    (20, "delete_topics", 1, 6),
    (21, "delete_records", 0, 2),
    (22, "init_producer_id", 0, 5),
    (23, "offset_for_leader_epoch", 2, 4),
    (ADD_PARTITIONS_TO_TXN, "add_partitions_to_txn", 0, 5),
    (25, "add_offsets_to_txn", 0, 4),
    (26, "end_txn", 0, 5),
    (WRITE_TXN_MARKERS, "write_txn_markers", 1, 2),
    (28, "txn_offset_commit", 0, 6),
    (29, "describe_acls", 1, 3),
    (30, "create_acls", 1, 3),
    (31, "delete_acls", 1, 3),
    (32, "describe_configs", 1, 4),
    (33, "alter_configs", 0, 2),
    (34, "alter_replica_log_dirs", 1, 2),
    (35, "describe_log_dirs", 1, 5),
    (36, "sasl_authenticate", 0, 2),
    (37, "create_partitions", 0, 3),
    (42, "delete_groups", 0, 3),
    (43, "elect_leaders", 0, 2),
    (44, "incremental_alter_configs", 0, 1),
    (45, "alter_partition_reassignments", 0, 1),
    (46, "list_partition_reassignments", 0, 0),
    (47, "offset_delete", 0, 0),
    (48, "describe_client_quotas", 0, 1),
    (49, "alter_client_quotas", 0, 1),
    (50, "describe_user_scram_credentials", 0, 0),
    (51, "alter_user_scram_credentials", 0, 0),
    (55, "describe_quorum", 0, 2),
    (57, "update_features", 0, 2),
    (60, "describe_cluster", 0, 2),
    (61, "describe_producers", 0, 0),
    (65, "describe_transactions", 0, 0),
    (66, "list_transactions", 0, 2),
    (68, "consumer_group_heartbeat", 0, 1),
    (CONSUMER_GROUP_DESCRIBE, "consumer_group_describe", 0, 1),
    (74, "list_config_resources", 0, 1),
    (75, "describe_topic_partitions", 0, 0),
    (SHARE_GROUP_HEARTBEAT, "share_group_heartbeat", 1, 1),
    (SHARE_GROUP_DESCRIBE, "share_group_describe", 1, 1),
    (78, "share_fetch", 1, 2),
    (79, "share_acknowledge", 1, 2),
    (83, "initialize_share_group_state", 0, 0),
    (84, "read_share_group_state", 0, 0),
    (85, "write_share_group_state", 0, 1),
    (86, "delete_share_group_state", 0, 0),
    (87, "read_share_group_state_summary", 0, 1),
    (STREAMS_GROUP_HEARTBEAT, "streams_group_heartbeat", 0, 1),
    (STREAMS_GROUP_DESCRIBE, "streams_group_describe", 0, 1),
    (DESCRIBE_SHARE_GROUP_OFFSETS, "describe_share_group_offsets", 0, 1),
    (91, "alter_share_group_offsets", 0, 0),
    (92, "delete_share_group_offsets", 0, 0),
    (
        STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
        "streams_group_topology_description_update",
        0,
        0,
    ),
)

_BETWEEN_BROKERS: Final = (
    (ALTER_PARTITION, "alter_partition", 2, 3),
    (ENVELOPE, "envelope", 0, 0),
    (ALLOCATE_PRODUCER_IDS, "allocate_producer_ids", 0, 0),
)

APIS: Final[dict[int, Api]] = {row[0]: Api(*row) for row in (*_TABLE, *_BETWEEN_BROKERS)}
INTERNAL: Final = frozenset(row[0] for row in _BETWEEN_BROKERS)
"""Sent by brokers to their controller; not advertised to clients."""
FOR_CONTROLLER: Final = frozenset(
    (19, 20, 33, 37, 43, 44, 45, 46, 49, 51, 57, ALTER_PARTITION, ALLOCATE_PRODUCER_IDS)
)
"""Only the controller can answer these: other brokers forward them."""
REFUSED_BELOW: Final = {PRODUCE: 3}
