"""One kind of coordinator: which topic it keeps, and what the runtime needs to run its shards.

A node has a table of kinds: internal topic to kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ottla.protocol.errors import ErrorCode
from ottla.shards.shard import Shard

ShardT = TypeVar("ShardT", bound=Shard)


def coordinator_error(code: ErrorCode) -> ErrorCode:
    """What a failed append means to a client of the coordinator, as in Kafka
    (CoordinatorOperationExceptionHelper)."""
    match code:
        case (
            ErrorCode.unknown_topic_or_partition
            | ErrorCode.not_enough_replicas
            | ErrorCode.not_enough_replicas_after_append
            | ErrorCode.request_timed_out
        ):
            return ErrorCode.coordinator_not_available
        case ErrorCode.not_leader_or_follower | ErrorCode.kafka_storage_error:
            return ErrorCode.not_coordinator
        case ErrorCode.network_exception:
            # Of a verification. Older producers do not expect it; with this one they try again
            # without looking for another coordinator.
            return ErrorCode.coordinator_load_in_progress
        case (
            ErrorCode.message_too_large
            | ErrorCode.record_list_too_large
            | ErrorCode.invalid_fetch_size
        ):
            return ErrorCode.unknown_server_error
    return code


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardKind(Generic[ShardT]):
    """A kind of shard, and how its records are stored."""

    topic: str
    settings: Any
    """Every step of the kind has them as `step.settings`."""
    new_shard: Callable[[], ShardT]
    encode: Callable[[Any], tuple[bytes, bytes | None]]
    """A record's key and value."""
    decode: Callable[[bytes, bytes | None], Any]
    """The record; None for a key of an unknown type. Raises ValueError for other bytes."""
    commit_timeout_ms: int
    """How long a reply waits for the high watermark before it becomes an error."""
    newest_suffices: bool = False
    """Each record is the whole state of its key: while loading, of the records outside of
    transactions that follow one another only the newest of each key is applied."""
    loads_when_elected: bool = False
    """Load at once, not with the first request: there may be work to resume."""
    error_of: Callable[[ErrorCode], ErrorCode] = coordinator_error
    """The error that a client gets for that of an append."""
    on_committed: Callable[[Any], None] | None = None
    """Called with each entry of a step's `committed`, once that step is committed."""
