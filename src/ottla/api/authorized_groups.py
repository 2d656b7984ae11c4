"""Requests about groups and transactions whose permission is no plain list."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ottla.api.authorized_topics import NOT_REQUESTED, with_operations
from ottla.api.context import Context
from ottla.api.group_history import name_in as group_in
from ottla.api.group_history import refuse as refuse_history
from ottla.api.permissions import (
    CODES,
    Need,
    answer_parts,
    authorization,
    may,
    refusal,
    split,
    topic_in,
    topic_name,
)
from ottla.api.streams_group_describe import DESCRIPTION_NOT_TOLD
from ottla.api.streams_topology import checked_names, subtopology_topics
from ottla.groups.history.events import STREAMS
from ottla.network.handlers import Answer
from ottla.protocol.access import Operation, Resource
from ottla.protocol.error_response import error_response
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices

_DESCRIBE_GROUP: Final = Need(Operation.DESCRIBE, Resource.GROUP)
_DESCRIBE_TOPIC: Final = Need(Operation.DESCRIBE, Resource.TOPIC)
_DESCRIBE_TRANSACTION: Final = Need(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID)
_DESCRIBE_CLUSTER: Final = Need(Operation.DESCRIBE, Resource.CLUSTER)
_CLUSTER_ACTION: Final = Need(Operation.CLUSTER_ACTION, Resource.CLUSTER)
_GROUP_DENIED: Final = CODES[Resource.GROUP]
_TOPIC_DENIED: Final = CODES[Resource.TOPIC]
_TRANSACTION_DENIED: Final = CODES[Resource.TRANSACTIONAL_ID]
_HIDDEN_TOPICS: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)
_HIDDEN_STREAMS_TOPICS: Final = (
    "The described group uses topics that the client is not authorized to describe."
)
_TRANSACTION: Final = 1
_SHARE: Final = 2
_MANY_GROUPS: Final = 8


def _itself(item: Any, context: Context) -> str | None:
    return str(item)


def _group_id(item: Any, context: Context) -> str | None:
    return str(item.group_id)


async def find_coordinator(request: Any, context: Context, answer: Answer) -> Any:
    key_type = getattr(request, "key_type", 0)
    is_transaction = key_type == _TRANSACTION
    if key_type == _SHARE and not may(context, _CLUSTER_ACTION):
        return await refusal(request, CODES[Resource.CLUSTER], context)
    if key_type == _SHARE:
        return await answer(request, context)
    need = _DESCRIBE_TRANSACTION if is_transaction else _DESCRIBE_GROUP
    code = CODES[need.resource]
    if not hasattr(request, "coordinator_keys"):
        if may(context, need, request.key):
            return await answer(request, context)
        return context.messages.FindCoordinatorResponse(
            error_code=code, error_message=None, node_id=-1, host="", port=-1
        )
    allowed, refused = await split(request.coordinator_keys, need, _itself, context)
    response = await answer_parts(
        request, context, answer, asked="coordinator_keys", answered="coordinators",
        allowed=allowed, refused=refused, code=code,
    )  # fmt: skip
    for each in response.coordinators:
        if each.error_code is code:
            each.node_id = each.port = -1
    return response


async def describe_groups(request: Any, context: Context, answer: Answer) -> Any:
    allowed, refused = await split(request.groups, _DESCRIBE_GROUP, _itself, context)
    response = await answer_parts(
        request, context, answer, asked="groups", answered="groups", allowed=allowed,
        refused=refused, code=_GROUP_DENIED,
    )  # fmt: skip
    response.groups = tuple(await with_operations(response.groups, Resource.GROUP, context))
    return response


async def list_groups(request: Any, context: Context, answer: Answer) -> Any:
    """All with Describe on the cluster, else those that the client may describe."""
    response = await answer(request, context)
    if not may(context, _DESCRIBE_CLUSTER, log=False):
        shown, _ = await split(response.groups, _DESCRIBE_GROUP, _group_id, context, log=False)
        response.groups = tuple(shown)
    return response


async def offset_fetch(request: Any, context: Context, answer: Answer) -> Any:
    """Describe on the group and on the topics; of all its topics the others are left out."""
    if context.version >= _MANY_GROUPS:
        return await _offset_fetch_of_groups(request, context, answer)
    if not may(context, _DESCRIBE_GROUP, request.group_id):
        return await refusal(request, _GROUP_DENIED, context)
    if request.topics is None:
        response = await answer(request, context)
        shown, _ = await split(response.topics, _DESCRIBE_TOPIC, topic_name, context, log=False)
        response.topics = tuple(shown)
        return response
    allowed, refused = await split(request.topics, _DESCRIBE_TOPIC, topic_name, context)
    request.topics = tuple(allowed)
    response = await answer(request, context)
    errors = await _refused_offsets(refused, response, context)
    response.topics = (*response.topics, *errors)
    return response


async def _offset_fetch_of_groups(request: Any, context: Context, answer: Answer) -> Any:
    allowed, refused = await split(request.groups, _DESCRIBE_GROUP, _group_id, context)
    hidden: dict[str, list[Any]] = {}
    everything: set[str] = set()
    for group in allowed:
        if group.topics is None:
            everything.add(group.group_id)
            continue
        shown, others = await split(group.topics, _DESCRIBE_TOPIC, topic_name, context)
        if others:
            group.topics = tuple(shown)
            hidden[group.group_id] = others
    request.groups = tuple(allowed)
    response = await answer(request, context)
    for group in response.groups:
        if group.group_id in everything:
            shown, _ = await split(group.topics, _DESCRIBE_TOPIC, topic_name, context, log=False)
            group.topics = tuple(shown)
        elif group.error_code is ErrorCode.none and group.group_id in hidden:
            errors = await _refused_offsets(hidden[group.group_id], response, context)
            group.topics = (*group.topics, *errors)
    build = context.messages
    denied = [
        build.OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=_GROUP_DENIED)
        for group in refused
    ]
    response.groups = (*response.groups, *denied)
    return response


async def _refused_offsets(topics: list[Any], response: Any, context: Context) -> list[Any]:
    build, slices = context.messages, Slices()
    is_old = context.version < _MANY_GROUPS
    partition = (
        build.OffsetFetchResponsePartition if is_old else build.OffsetFetchResponsePartitions
    )
    found = []
    for topic in topics:
        partitions = []
        for index in topic.partition_indexes:
            await slices.count()
            partitions.append(
                partition(
                    partition_index=index,
                    committed_offset=-1,
                    committed_leader_epoch=-1,
                    metadata="",
                    error_code=_TOPIC_DENIED,
                )
            )
        if is_old:
            one = build.OffsetFetchResponseTopic(name=topic.name, partitions=tuple(partitions))
        else:
            one = build.OffsetFetchResponseTopics(
                name=getattr(topic, "name", ""),
                topic_id=getattr(topic, "topic_id", None),
                partitions=tuple(partitions),
            )
        found.append(one)
    return found


async def init_producer_id(request: Any, context: Context, answer: Answer) -> Any:
    """A transactional id needs Write; without one, IdempotentWrite on the cluster, or Write on any
    topic (KIP-679).
    """
    transaction = request.transactional_id
    if transaction is not None:
        if may(context, Need(Operation.WRITE, Resource.TRANSACTIONAL_ID), transaction):
            return await answer(request, context)
        return await refusal(request, _TRANSACTION_DENIED, context)
    idempotent = Need(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER)
    if (
        may(context, idempotent, log=False)
        or authorization(context).allows_on_any(context.session, Operation.WRITE, Resource.TOPIC)
        or may(context, idempotent)
    ):
        return await answer(request, context)
    return await refusal(request, ErrorCode.cluster_authorization_failed, context)


async def add_partitions_to_txn(request: Any, context: Context, answer: Answer) -> Any:
    """All or nothing: one topic that the client may not write to, and no partition is added."""
    if not hasattr(request, "v3_and_below_topics"):
        return await answer(request, context)  # from brokers, which is decided before
    transaction = Need(Operation.WRITE, Resource.TRANSACTIONAL_ID)
    if not may(context, transaction, request.v3_and_below_transactional_id):
        return await refusal(request, _TRANSACTION_DENIED, context)
    need = Need(Operation.WRITE, Resource.TOPIC)
    _, refused = await split(request.v3_and_below_topics, need, topic_name, context)
    if not refused:
        return await answer(request, context)
    response = await refusal(request, ErrorCode.operation_not_attempted, context)
    names, slices = {topic.name for topic in refused}, Slices()
    for topic in response.results_by_topic_v3_and_below:
        if topic.name in names:
            for each in topic.results_by_partition:
                await slices.count()
                each.partition_error_code = _TOPIC_DENIED
    return response


async def describe_transactions(request: Any, context: Context, answer: Answer) -> Any:
    """Topics that the client may not describe are left out."""
    allowed, refused = await split(
        request.transactional_ids, _DESCRIBE_TRANSACTION, _itself, context
    )
    response = await answer_parts(
        request, context, answer, asked="transactional_ids", answered="transaction_states",
        allowed=allowed, refused=refused, code=_TRANSACTION_DENIED,
    )  # fmt: skip
    for state in response.transaction_states:
        shown, _ = await split(
            state.topics,
            _DESCRIBE_TOPIC,
            lambda topic, context: str(topic.topic),
            context,
            log=False,
        )
        state.topics = tuple(shown)
    return response


async def list_transactions(request: Any, context: Context, answer: Answer) -> Any:
    response = await answer(request, context)
    shown, _ = await split(
        response.transaction_states,
        _DESCRIBE_TRANSACTION,
        lambda state, context: str(state.transactional_id),
        context,
        log=False,
    )
    response.transaction_states = tuple(shown)
    return response


async def modern_group_describe(request: Any, context: Context, answer: Answer) -> Any:
    """Describe on the group, and on every topic that a member has: else the group is not shown."""
    return await _described(request, context, answer, _topics_of_members, _HIDDEN_TOPICS)


async def _described(
    request: Any,
    context: Context,
    answer: Answer,
    topics_of: Callable[[Any, Slices], Awaitable[set[str]]],
    why: str,
    *,
    log: bool = True,
) -> Any:
    """A group that has a topic which may not be described is an error with this text."""
    allowed, refused = await split(request.group_ids, _DESCRIBE_GROUP, _itself, context)
    response = await answer_parts(
        request, context, answer, asked="group_ids", answered="groups", allowed=allowed,
        refused=refused, code=_GROUP_DENIED,
    )  # fmt: skip
    shown, slices = [], Slices()
    for group in response.groups:
        names = await topics_of(group, slices)
        _, hidden = await split(tuple(names), _DESCRIBE_TOPIC, _itself, context, log=log)
        if hidden:
            group = context.messages.DescribedGroup(
                error_code=_TOPIC_DENIED,
                error_message=why,
                group_id=group.group_id,
                authorized_operations=NOT_REQUESTED,
            )
        shown.append(group)
    response.groups = tuple(await with_operations(shown, Resource.GROUP, context))
    return response


async def _topics_of_members(group: Any, slices: Slices) -> set[str]:
    names: set[str] = set()
    for member in group.members:
        await slices.count()
        assignments = [member.assignment]
        if hasattr(member, "target_assignment"):  # share groups have none
            assignments.append(member.target_assignment)
        for assignment in assignments:
            for topic in assignment.topic_partitions:
                await slices.count()
                names.add(topic.topic_name)
    return names


async def modern_group_heartbeat(request: Any, context: Context, answer: Answer) -> Any:
    """Read on the group, and Describe on the topics that it subscribes to (KIP-848, KIP-932)."""
    if not may(context, Need(Operation.READ, Resource.GROUP), request.group_id):
        return error_response(request, _GROUP_DENIED)
    names = request.subscribed_topic_names or ()
    _, refused = await split(names, _DESCRIBE_TOPIC, _itself, context)
    if refused:
        return error_response(request, _TOPIC_DENIED)
    return await answer(request, context)


async def streams_group_heartbeat(request: Any, context: Context, answer: Answer) -> Any:
    """Read on the group, and Describe on the topics of the topology (KIP-1071). What names too
    much, or what no topic can be called, is refused before, by the handler.
    """
    if not may(context, Need(Operation.READ, Resource.GROUP), request.group_id):
        return error_response(request, _GROUP_DENIED)
    if request.topology is not None:
        try:
            names = await checked_names(request.topology, Slices())
        except ApiError:
            return await answer(request, context)  # which refuses it
        _, refused = await split(names, _DESCRIBE_TOPIC, _itself, context)
        if refused:
            return error_response(request, _TOPIC_DENIED)
    return await answer(request, context)


async def streams_group_describe(request: Any, context: Context, answer: Answer) -> Any:
    """Describe on the group, and on every topic of its topology: else the group is not shown.

    The topology's description (KIP-1331) also names topics that are in no subtopology, such as what
    is written at the end. It is left out if one of them may not be described.
    """
    response = await _described(
        request, context, answer, _topics_of_topology, _HIDDEN_STREAMS_TOPICS, log=False
    )
    slices = Slices()
    for group in response.groups:
        description = getattr(group, "topology_description", None)
        if description is None:
            continue
        names = await _topics_of_description(description, slices)
        _, hidden = await split(tuple(names), _DESCRIBE_TOPIC, _itself, context, log=False)
        if hidden:
            group.topology_description = None
            group.topology_description_status = DESCRIPTION_NOT_TOLD
    return response


async def _topics_of_description(description: Any, slices: Slices) -> set[str]:
    nodes = [node for each in description.subtopologies for node in each.nodes]
    for store in description.global_stores:
        nodes += (store.source, store.processor)
    names: set[str] = set()
    for node in nodes:
        await slices.count(1 + len(node.source_topics))
        names.update(node.source_topics)
        if node.sink_topic is not None:
            names.add(node.sink_topic)
    return names


async def _topics_of_topology(group: Any, slices: Slices) -> set[str]:
    names: set[str] = set()
    topology = group.topology
    for subtopology in () if topology is None else topology.subtopologies or ():
        found = subtopology_topics(subtopology)
        await slices.count(1 + len(found))
        names.update(found)
    return names


async def describe_share_group_offsets(request: Any, context: Context, answer: Answer) -> Any:
    """Describe on the groups and on the topics; of all its topics the others are left out."""
    allowed, refused = await split(request.groups, _DESCRIBE_GROUP, _group_id, context)
    hidden: dict[str, list[Any]] = {}
    everything: set[str] = set()
    for group in allowed:
        if group.topics is None:
            everything.add(group.group_id)
            continue
        shown, others = await split(group.topics, _DESCRIBE_TOPIC, topic_name, context)
        group.topics = tuple(shown)
        hidden[group.group_id] = others
    response = await answer_parts(
        request, context, answer, asked="groups", answered="groups", allowed=allowed,
        refused=refused, code=_GROUP_DENIED,
    )  # fmt: skip
    slices = Slices()
    for group in response.groups:
        if group.error_code is not ErrorCode.none:
            continue
        if group.group_id in everything:
            shown, _ = await split(group.topics, _DESCRIBE_TOPIC, topic_name, context, log=False)
            group.topics = tuple(shown)
            continue
        for topic in hidden.get(group.group_id, ()):
            await slices.count(1 + len(topic.partitions))
            group.topics += (_hidden_share_topic(topic, context),)
    return response


def _hidden_share_topic(topic: Any, context: Context) -> Any:
    build = context.messages
    return build.DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        topic_id=None,
        partitions=tuple(
            build.DescribeShareGroupOffsetsResponsePartition(
                partition_index=partition,
                start_offset=-1,
                leader_epoch=0,
                lag=-1,
                error_code=_TOPIC_DENIED,
            )
            for partition in topic.partitions
        ),
    )


async def group_history(request: bytes, context: Context, answer: Answer) -> bytes:
    """Describe on the group. What names topics is shown of those that may be described, and why a
    rebalance began in full only with Describe on the cluster, as its reasons are text.
    """
    try:
        document = json.loads(request)
    except (ValueError, RecursionError):
        return bytes(await answer(request, context))  # which refuses it
    name = group_in(document) if isinstance(document, dict) else None
    if name is None:
        return bytes(await answer(request, context))
    if not may(context, _DESCRIBE_GROUP, name):
        message = f"{context.session.principal} needs Describe on group {name}"
        return json.dumps(refuse_history(message, "not_authorized")).encode()
    found = bytes(await answer(request, context))
    if may(context, _DESCRIBE_CLUSTER, log=False):
        return found
    history = json.loads(found)
    slices = Slices()
    for entry in history.get("entries", ()):
        await slices.count(1 + len(entry["causes"]))
        for cause in entry["causes"]:
            cause.pop("details", None)
        # Of a streams group they name subtopologies.
        if entry["type"] != STREAMS:
            shown, hidden = await split(
                entry["moves"], _DESCRIBE_TOPIC, topic_in, context, log=False
            )
            entry["moves"] = shown
            entry["is_complete"] = entry["is_complete"] and not hidden
    return json.dumps(history).encode()
