"""FindCoordinator (key 10): the broker that coordinates a group or a transactional id.

v1: key type. v3: flexible. v4 (KIP-699): many keys of one type. v5 (KIP-890): the error
TRANSACTION_ABORTABLE. v6 (KIP-932): share partitions, named "group:topic id:partition". The first
request for a group creates `__consumer_offsets`, the first for a transactional id
`__transaction_state`, the first for a share partition `__share_group_state`.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Broker, Context
from ottla.api.metadata import broker_addresses
from ottla.controller.plan import Outcome
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC
from ottla.protocol.kafka_uuid import uuid_from_text
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import Slices

KEY: Final = 10
ACCESS: Final = (
    Access(Operation.DESCRIBE, Resource.GROUP),
    Access(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID),
)

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
_TOPICS: Final = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC, SHARE: SHARE_TOPIC}
_SHARES: Final = 6
"""The first version with share partitions."""
_MANY_KEYS: Final = 4
_NOWHERE: Final = (-1, "", -1)

_KEY_TYPE: Final = VersionedField(KEY, "FindCoordinatorRequest", "key_type", GROUP)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    key_type = _KEY_TYPE(request)
    if context.version < _MANY_KEYS:
        error, message, (node_id, host, port) = await _find(key_type, request.key, context)
        return build.FindCoordinatorResponse(
            error_code=error, error_message=message, node_id=node_id, host=host, port=port
        )
    coordinators, slices = [], Slices()
    for key in request.coordinator_keys:
        await slices.count()
        error, message, (node_id, host, port) = await _find(key_type, key, context)
        coordinators.append(
            build.Coordinator(
                key=key,
                node_id=node_id,
                host=host,
                port=port,
                error_code=error,
                error_message=message,
            )
        )
    return build.FindCoordinatorResponse(coordinators=tuple(coordinators))


async def _find(
    key_type: int, key: str, context: Context
) -> tuple[ErrorCode, str | None, tuple[int, str, int]]:
    try:
        return ErrorCode.none, None, await _coordinator(key_type, key, context)
    except ApiError as error:
        return error.code, str(error), _NOWHERE


async def _coordinator(key_type: int, key: str, context: Context) -> tuple[int, str, int]:
    broker = context.broker
    if key_type not in _TOPICS or (key_type == SHARE and context.version < _SHARES):
        raise ApiError(ErrorCode.invalid_request, f"There is no coordinator of type {key_type}.")
    if key_type == SHARE:
        _check_share_partition(key)
    topic = _TOPICS[key_type]
    if broker.image.topic(topic) is None:
        outcome = await _ensure_topic(key_type, broker)
        if outcome.failed:
            raise ApiError(ErrorCode.coordinator_not_available, outcome.message)
    state = broker.image.partition(topic, _partition_for(key_type, key, broker))
    for broker_id, host, port, _ in broker_addresses(context):
        if state is not None and broker_id == state.leader:
            return broker_id, host, port
    raise ApiError(ErrorCode.coordinator_not_available, "The coordinator is not available.")


async def _ensure_topic(key_type: int, broker: Broker) -> Outcome:
    if key_type == GROUP:
        return await broker.topic_creation.ensure_offsets_topic()
    if key_type == TRANSACTION:
        return await broker.topic_creation.ensure_transactions_topic()
    return await broker.topic_creation.ensure_share_topic()


def _partition_for(key_type: int, key: str, broker: Broker) -> int:
    if key_type == GROUP:
        return broker.groups.partition_for(key)
    if key_type == TRANSACTION:
        return broker.transactions.partition_for(key)
    return broker.shares.coordinator.partition_for(key)


def _check_share_partition(key: str) -> None:
    """Raises ApiError: INVALID_REQUEST. The group id may have colons (SharePartitionKey)."""
    try:
        group_id, topic_id, partition = key.rsplit(":", 2)
        uuid_from_text(topic_id)
        is_valid = bool(group_id) and int(partition) >= 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ApiError(
            ErrorCode.invalid_request,
            f"{key!r} names no share partition: it must be group:topicId:partition.",
        )
