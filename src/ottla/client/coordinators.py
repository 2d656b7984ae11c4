"""Which broker coordinates a group or a transactional id: FindCoordinator (key 10)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from ottla.client.metadata import Broker
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

FIND_COORDINATOR: Final = 10
NEWEST: Final = 4
MANY: Final = 4
"""The first version with many keys (KIP-699; Apache Kafka 3.0)."""

MOVING: Final = frozenset(
    {
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)
"""Another broker is about to coordinate, or the internal topic is being created."""


class Coordinated(IntEnum):
    """What a coordinator is for: the key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


class FoundCoordinator(NamedTuple):
    """The coordinator of one group or transactional id, or the broker's error."""

    key: str
    broker: Broker
    error: ErrorCode
    message: str | None


def coordinators_question(kind: Coordinated, keys: Sequence[str]) -> Question:
    """About all of these keys."""

    def build(messages: Messages) -> Any:
        return messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=tuple(keys))

    return Question(FIND_COORDINATOR, NEWEST, build, MANY)


def coordinator_question(kind: Coordinated, key: str) -> Question:
    """About one key, for brokers that know no more."""

    def build(messages: Messages) -> Any:
        return messages.FindCoordinatorRequest(key=key, key_type=kind)

    return Question(FIND_COORDINATOR, MANY - 1, build, int(kind is not Coordinated.GROUP))


def read_coordinators(response: Any, key: str = "") -> list[FoundCoordinator]:
    """The response to one of these questions; `key` is that of the second."""
    found = getattr(response, "coordinators", None)
    return [
        FoundCoordinator(
            getattr(each, "key", key),
            Broker(each.node_id, each.host, each.port),
            each.error_code,
            getattr(each, "error_message", None),
        )
        for each in (found if found is not None else [response])
    ]
