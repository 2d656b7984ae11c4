"""How large a request may be, by its type: its frame, and its elements.

Only the types that carry an application's data need socket.request.max.bytes. A frame of another
type and of that size would be nothing but elements and names, which cost far more than their bytes.
Apache Kafka has one limit for all types.

A request that changes the cluster is decided as a whole: what it names is compared, sorted and
stored together. Apache Kafka's controller takes at most 10,000 records of one request, and refuses
it afterwards; here it may hold a tenth of the elements of another type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.protocol.message_budget import MESSAGE, Budget
from ottla.protocol.versions import (
    APIS,
    BROKER_PROOF,
    ELECTIONS,
    ENVELOPE,
    GROUP_HISTORY,
    JOURNEY,
    JOURNEY_GROUPS,
    KEY_OFFSETS,
    METADATA_DELTAS,
    PRODUCE,
    SEGMENTS,
)

MAX_REQUEST_BYTES: Final = 8 << 20
"""200,000 partitions in an OffsetFetch or Metadata request have about 4 MB."""
MAX_JSON_BYTES: Final = 128 << 10
"""A journey's key of 64 KiB has 88 KB there. Python's JSON parser lets no other thread run, so a
thread would not help; for 43,000 empty lists it takes 4 ms.
"""
_MAX_ENVELOPE_BYTES: Final = MAX_REQUEST_BYTES + (64 << 10)
"""A request for the controller, with who sent it."""
_OTHERS: Final = {
    ENVELOPE: _MAX_ENVELOPE_BYTES,
    JOURNEY: MAX_JSON_BYTES,
    JOURNEY_GROUPS: MAX_JSON_BYTES,
    BROKER_PROOF: MAX_JSON_BYTES,
    GROUP_HISTORY: MAX_JSON_BYTES,
    KEY_OFFSETS: MAX_JSON_BYTES,
    SEGMENTS: MAX_JSON_BYTES,
    ELECTIONS: MAX_JSON_BYTES,
    METADATA_DELTAS: MAX_JSON_BYTES,
}


def limits_by_type(max_bytes: int) -> Callable[[int], int]:
    """The largest frame of each request type; `max_bytes` is socket.request.max.bytes."""

    def limit(key: int) -> int:
        if key == PRODUCE:
            return max_bytes
        return min(max_bytes, _OTHERS.get(key, MAX_REQUEST_BYTES))

    return limit


MAX_ADMIN_ELEMENTS: Final = 100_000
"""10,000 partitions with nine replicas each."""
_ADMIN: Final = frozenset(
    key
    for key, api in APIS.items()
    if api.name
    in {
        "create_topics", "delete_topics", "alter_configs", "create_partitions", "elect_leaders",
        "incremental_alter_configs", "alter_partition_reassignments",
        "alter_user_scram_credentials", "alter_client_quotas", "update_features",
    }
)  # fmt: skip


def budget_of(key: int) -> Budget:
    """What a request of this type may hold."""
    return Budget(MAX_ADMIN_ELEMENTS, MESSAGE.tags) if key in _ADMIN else MESSAGE
