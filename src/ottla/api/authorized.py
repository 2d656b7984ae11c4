"""What each request needs, and the handlers of a broker with an authorizer.

The rules are KafkaApis' and ControllerApis' (KIP-11, and what each later KIP added). A request type
without a rule is refused. Without an authorizer none of this is called, and nothing is paid.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Any, Final, TypeAlias

from ottla.api import authorized_groups, authorized_topics
from ottla.api.context import Context
from ottla.api.permissions import CODES, Need, answer_parts, may, refusal, split, topic_name
from ottla.network.handlers import Answer, Handler, Handlers
from ottla.protocol.access import Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versions import (
    BROKER_PROOF,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    ELECTIONS,
    GROUP_HISTORY,
    INTERNAL,
    JOURNEY,
    JOURNEY_GROUPS,
    KEY_OFFSETS,
    METADATA_DELTAS,
    SEGMENTS,
    SHARE_GROUP_DESCRIBE,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_DESCRIBE,
    STREAMS_GROUP_HEARTBEAT,
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
)

Rule: TypeAlias = Callable[[Any, Context, Answer], Awaitable[Any]]
"""Takes a request and its handler, and returns the response."""

_CLUSTER, _TOPIC, _GROUP = Resource.CLUSTER, Resource.TOPIC, Resource.GROUP
_TRANSACTION: Final = Resource.TRANSACTIONAL_ID
_O: Final = Operation


def _whole(*wanted: tuple[Operation, Resource, str]) -> Rule:
    """The whole request needs these; the third is the field with the resource's name. A resource
    that is not named (null) is not needed.
    """

    async def rule(request: Any, context: Context, answer: Answer) -> Any:
        for operation, resource, field in wanted:
            need = Need(operation, resource)
            if field:
                name = getattr(request, field)
                allowed = name is None or may(context, need, name)
            else:
                allowed = may(context, need)
            if not allowed:
                return await refusal(request, CODES[resource], context)
        return await answer(request, context)

    return rule


def _each(
    asked: str, answered: str, operation: Operation, resource: Resource = Resource.TOPIC
) -> Rule:
    """Each resource that the request lists needs this."""
    need = Need(operation, resource)

    def name_of(item: Any, context: Context) -> str | None:
        return item if isinstance(item, str) else topic_name(item, context)

    async def rule(request: Any, context: Context, answer: Answer) -> Any:
        allowed, refused = await split(getattr(request, asked), need, name_of, context)
        return await answer_parts(
            request, context, answer, asked=asked, answered=answered, allowed=allowed,
            refused=refused, code=CODES[resource],
        )  # fmt: skip

    return rule


def _both(first: Rule, then: Rule) -> Rule:
    """The first rule's check, then the other's."""

    async def rule(request: Any, context: Context, answer: Answer) -> Any:
        return await first(request, context, partial(_swapped, then, answer))

    return rule


async def _swapped(rule: Rule, answer: Answer, request: Any, context: Context) -> Any:
    return await rule(request, context, answer)


async def _free(request: Any, context: Context, answer: Answer) -> Any:
    return await answer(request, context)


async def _write_markers(request: Any, context: Context, answer: Answer) -> Any:
    """An administrator may abort; the handler sees to what else is a broker's."""
    if not may(context, Need(_O.ALTER, _CLUSTER), log=False) and not may(
        context, Need(_O.CLUSTER_ACTION, _CLUSTER)
    ):
        return await refusal(request, ErrorCode.cluster_authorization_failed, context)
    return await answer(request, context)


def _or_as_broker(rule: Rule) -> Rule:
    """ClusterAction suffices: OffsetForLeaderEpoch was a request of brokers before consumers used
    it (KIP-320).
    """

    async def either(request: Any, context: Context, answer: Answer) -> Any:
        if may(context, Need(_O.CLUSTER_ACTION, _CLUSTER), log=False):
            return await answer(request, context)
        return await rule(request, context, answer)

    return either


def _on_cluster(operation: Operation) -> Rule:
    return _whole((operation, _CLUSTER, ""))


_READ_GROUP: Final = _whole((_O.READ, _GROUP, "group_id"))
_WRITE_TRANSACTION: Final = _whole((_O.WRITE, _TRANSACTION, "transactional_id"))

RULES: Final[dict[int, Rule]] = {
    0: authorized_topics.produce,
    1: _free,  # each read of a partition asks: see `fetch_reads`
    2: _each("topics", "topics", _O.DESCRIBE),
    3: authorized_topics.metadata,
    8: _both(_READ_GROUP, _each("topics", "topics", _O.READ)),
    9: authorized_groups.offset_fetch,
    10: authorized_groups.find_coordinator,
    11: _READ_GROUP,
    12: _READ_GROUP,
    13: _READ_GROUP,
    14: _READ_GROUP,
    15: authorized_groups.describe_groups,
    16: authorized_groups.list_groups,
    17: _free,
    18: _free,
    19: authorized_topics.create_topics,
    20: authorized_topics.delete_topics,
    21: _each("topics", "topics", _O.DELETE),
    22: authorized_groups.init_producer_id,
    23: _or_as_broker(_each("topics", "topics", _O.DESCRIBE)),
    24: authorized_groups.add_partitions_to_txn,
    25: _whole((_O.WRITE, _TRANSACTION, "transactional_id"), (_O.READ, _GROUP, "group_id")),
    26: _WRITE_TRANSACTION,
    27: _write_markers,
    28: _both(
        _whole((_O.WRITE, _TRANSACTION, "transactional_id"), (_O.READ, _GROUP, "group_id")),
        _each("topics", "topics", _O.READ),
    ),
    29: _on_cluster(_O.DESCRIBE),
    30: _on_cluster(_O.ALTER),
    31: _on_cluster(_O.ALTER),
    32: authorized_topics.configs(_O.DESCRIBE_CONFIGS, "results"),
    33: authorized_topics.configs(_O.ALTER_CONFIGS, "responses"),
    34: _on_cluster(_O.ALTER),
    35: _on_cluster(_O.DESCRIBE),
    36: _free,
    37: _each("topics", "results", _O.ALTER),
    42: _each("groups_names", "results", _O.DELETE, _GROUP),
    43: _on_cluster(_O.ALTER),
    44: authorized_topics.configs(_O.ALTER_CONFIGS, "responses"),
    45: _on_cluster(_O.ALTER),
    46: _on_cluster(_O.DESCRIBE),
    47: _both(
        _whole((_O.DELETE, _GROUP, "group_id")),
        _each("topics", "topics", _O.READ),
    ),
    48: _on_cluster(_O.DESCRIBE_CONFIGS),
    49: _on_cluster(_O.ALTER_CONFIGS),
    50: _on_cluster(_O.DESCRIBE),
    51: _on_cluster(_O.ALTER),
    55: _on_cluster(_O.DESCRIBE),
    57: _on_cluster(_O.ALTER),
    60: authorized_topics.describe_cluster,
    61: _each("topics", "topics", _O.READ),
    65: authorized_groups.describe_transactions,
    66: authorized_groups.list_transactions,
    68: authorized_groups.modern_group_heartbeat,
    69: authorized_groups.modern_group_describe,
    74: _on_cluster(_O.DESCRIBE_CONFIGS),
    75: authorized_topics.describe_topic_partitions,
    SHARE_GROUP_HEARTBEAT: authorized_groups.modern_group_heartbeat,
    SHARE_GROUP_DESCRIBE: authorized_groups.modern_group_describe,
    STREAMS_GROUP_HEARTBEAT: authorized_groups.streams_group_heartbeat,
    STREAMS_GROUP_DESCRIBE: authorized_groups.streams_group_describe,
    DESCRIBE_SHARE_GROUP_OFFSETS: authorized_groups.describe_share_group_offsets,
    91: _both(_READ_GROUP, _each("topics", "responses", _O.READ)),
    92: _both(
        _whole((_O.DELETE, _GROUP, "group_id")),
        _each("topics", "responses", _O.READ),
    ),
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: _READ_GROUP,
    # Each partition asks: see `share_acknowledgements`.
    78: _READ_GROUP,
    79: _READ_GROUP,
    83: _on_cluster(_O.CLUSTER_ACTION),
    84: _on_cluster(_O.CLUSTER_ACTION),
    85: _on_cluster(_O.CLUSTER_ACTION),
    86: _on_cluster(_O.CLUSTER_ACTION),
    87: _on_cluster(_O.CLUSTER_ACTION),
    JOURNEY: authorized_topics.journey,
    GROUP_HISTORY: authorized_groups.group_history,
    KEY_OFFSETS: authorized_topics.key_offsets,
    SEGMENTS: authorized_topics.segments,
    ELECTIONS: authorized_topics.elections,
}
FROM_BROKERS: Final = (*INTERNAL, METADATA_DELTAS, JOURNEY_GROUPS, BROKER_PROOF)
"""Decided before a handler is asked: who has proven to be a broker."""


async def _refuse(request: Any, context: Context, answer: Answer) -> Any:
    return await refusal(request, ErrorCode.cluster_authorization_failed, context)


def _checked(handlers: Handlers, key: int) -> Handler | None:
    handler = handlers.find(key)
    if handler is None or key in FROM_BROKERS:
        return handler
    return handler._replace(answer=partial(_answer, RULES.get(key, _refuse), handler.answer))


async def _answer(rule: Rule, answer: Answer, request: Any, context: Context) -> Any:
    # ApiVersions in an unknown version has no request.
    if request is None or context.broker.is_broker(context.session):
        return await answer(request, context)
    return await rule(request, context, answer)


def authorized(handlers: Handlers) -> Handlers:
    """The same handlers, asked only for what the client may do."""
    return handlers._replace(find=cache(partial(_checked, handlers)))
