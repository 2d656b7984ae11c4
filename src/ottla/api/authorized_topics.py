"""Requests about topics, their settings and the cluster whose permission is no plain list."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any, Final

from ottla.api.context import Context
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
from ottla.network.handlers import Answer, EndConnectionError
from ottla.protocol.access import CLUSTER_NAME, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.runtime.slices import Slices

NOT_REQUESTED: Final = -(2**31)
_DENIED: Final = ErrorCode.topic_authorization_failed
_DESCRIBE: Final = Need(Operation.DESCRIBE, Resource.TOPIC)
_CREATE: Final = Need(Operation.CREATE, Resource.TOPIC)
_CREATE_ANY: Final = Need(Operation.CREATE, Resource.CLUSTER)
_DESCRIBE_CLUSTER: Final = Need(Operation.DESCRIBE, Resource.CLUSTER)
_TOPIC, _GROUP_CONFIG = 2, 32
_CONFIGS: Final = {_TOPIC: Resource.TOPIC, _GROUP_CONFIG: Resource.GROUP}
"""The resource type of a setting's owner; settings of anything else are the cluster's."""


async def produce(request: Any, context: Context, answer: Answer) -> Any:
    """Kafka ends the connection of a producer without acknowledgements that may not write."""
    transaction = getattr(request, "transactional_id", None)
    if transaction is not None and not may(
        context, Need(Operation.WRITE, Resource.TRANSACTIONAL_ID), transaction
    ):
        if request.acks == 0:
            raise EndConnectionError("the client may not use this transactional id (acks=0)")
        code = ErrorCode.transactional_id_authorization_failed
        return await refusal(request, code, context)
    need = Need(Operation.WRITE, Resource.TOPIC)
    allowed, refused = await split(request.topic_data, need, topic_name, context)
    if refused and request.acks == 0:
        raise EndConnectionError("the client may not write to this topic (acks=0)")
    return await answer_parts(
        request, context, answer, asked="topic_data", answered="responses", allowed=allowed,
        refused=refused, code=_DENIED,
    )  # fmt: skip


async def metadata(request: Any, context: Context, answer: Answer) -> Any:
    """Topics that the client may not describe do not exist for it. By id they are refused: an id
    tells nothing (KafkaApis.handleTopicMetadataRequest).
    """
    everything = request.topics is None or (context.version == 0 and not request.topics)
    errors: list[Any] = []
    if everything:
        response = copy(await answer(request, context))
        shown, _ = await split(response.topics, _DESCRIBE, topic_name, context, log=False)
        response.topics = tuple(shown)
    else:
        shown, hidden = await split(request.topics, _DESCRIBE, topic_name, context)
        creates = getattr(request, "allow_auto_topic_creation", True)
        if creates and context.broker.config.auto_create_topics_enable:
            shown, more = await _creatable(shown, context)
            hidden += more
        slices = Slices()
        for each in hidden:
            await slices.count()
            errors.append(_hidden(each, context))
        request.topics = tuple(shown)
        if context.version == 0 and not shown:
            request.topics = None  # an empty list would mean all
            response = copy(await answer(request, context))
            response.topics = ()
        else:
            response = copy(await answer(request, context))
    topics = await with_operations(response.topics, Resource.TOPIC, context)
    response.topics = (*topics, *errors)
    if getattr(response, "cluster_authorized_operations", NOT_REQUESTED) != NOT_REQUESTED:
        response.cluster_authorized_operations = _cluster_operations(context)
    return response


async def _creatable(items: list[Any], context: Context) -> tuple[list[Any], list[Any]]:
    """Topics that exist or that the client may create, and the others."""
    if may(context, _CREATE_ANY, log=False):
        return items, []

    def missing(item: Any, context: Context) -> str | None:
        name = topic_name(item, context)
        return None if name is None or name in context.broker.image.topics else name

    return await split(items, _CREATE, missing, context)


def _hidden(item: Any, context: Context) -> Any:
    topic_id = None if item.name else getattr(item, "topic_id", None)
    return context.messages.MetadataResponseTopic(
        error_code=_DENIED,
        name=item.name,
        topic_id=topic_id,
        topic_authorized_operations=NOT_REQUESTED,
    )


async def with_operations(items: Any, resource: Resource, context: Context) -> list[Any]:
    """The same parts of a response, with the operations that this client may use where they were
    asked for. Copies: a handler keeps parts for later responses.
    """
    field = "topic_authorized_operations"
    if resource is Resource.GROUP:
        field = "authorized_operations"
    found, slices = [], Slices()
    for item in items:
        await slices.count()
        if getattr(item, field, NOT_REQUESTED) == NOT_REQUESTED:
            found.append(item)
            continue
        name = item.group_id if resource is Resource.GROUP else item.name
        changed = copy(item)
        allowed = authorization(context).operations(context.session, resource, name or "")
        setattr(changed, field, allowed)
        found.append(changed)
    return found


def _cluster_operations(context: Context) -> int:
    if not may(context, _DESCRIBE_CLUSTER):
        return 0
    allowed = authorization(context)
    return allowed.operations(context.session, Resource.CLUSTER, CLUSTER_NAME)


async def describe_cluster(request: Any, context: Context, answer: Answer) -> Any:
    response = await answer(request, context)
    if response.cluster_authorized_operations != NOT_REQUESTED:
        response.cluster_authorized_operations = _cluster_operations(context)
    return response


async def describe_topic_partitions(request: Any, context: Context, answer: Answer) -> Any:
    """Named topics are refused; of all topics only those that the client may describe are there:
    they are named, so that a page is full.
    """
    errors: list[Any] = []
    image = context.broker.image
    slices = Slices()
    if request.topics:
        shown, hidden = await split(request.topics, _DESCRIBE, topic_name, context)
        for each in hidden:
            await slices.count()
            errors.append(
                context.messages.DescribeTopicPartitionsResponseTopic(
                    error_code=_DENIED, name=each.name, topic_authorized_operations=NOT_REQUESTED
                )
            )
    else:
        topics, _ = await split(
            tuple(image.topics.values()), _DESCRIBE, topic_name, context, log=False
        )
        shown = topics
    if not shown:
        return context.messages.DescribeTopicPartitionsResponse(topics=tuple(errors))
    request.topics = tuple(shown)
    response = await answer(request, context)
    topics = await with_operations(response.topics, Resource.TOPIC, context)
    response.topics = (*topics, *errors)
    return response


async def create_topics(request: Any, context: Context, answer: Answer) -> Any:
    """Create on the cluster or on the topic; its settings are shown with DescribeConfigs."""
    allowed: list[Any] = list(request.topics)
    refused: list[Any] = []
    if not may(context, _CREATE_ANY, log=False):
        allowed, refused = await split(request.topics, _CREATE, topic_name, context)
    response = await answer_parts(
        request, context, answer, asked="topics", answered="topics", allowed=allowed,
        refused=refused, code=_DENIED,
    )  # fmt: skip
    need, slices = Need(Operation.DESCRIBE_CONFIGS, Resource.TOPIC), Slices()
    for topic in response.topics:
        await slices.count()
        if (
            topic.error_code is ErrorCode.none
            and hasattr(topic, "topic_config_error_code")
            and not may(context, need, topic.name, log=False)
        ):
            topic.topic_config_error_code = _DENIED
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = None
    return response


async def delete_topics(request: Any, context: Context, answer: Answer) -> Any:
    """Delete on the topic, or on the cluster, which only ALL gives (ControllerApis.deleteTopics).
    The name of a refused id is told to who may describe the topic.
    """
    if may(context, Need(Operation.DELETE, Resource.CLUSTER), log=False):
        return await answer(request, context)
    field = "topic_names" if hasattr(request, "topic_names") else "topics"
    delete = Need(Operation.DELETE, Resource.TOPIC)

    def name_of(item: Any, context: Context) -> str | None:
        return item if isinstance(item, str) else topic_name(item, context)

    allowed, refused = await split(getattr(request, field), delete, name_of, context)
    slices = Slices()
    for each in refused:
        await slices.count()
        if getattr(each, "name", "") is None:
            name = topic_name(each, context)
            if name is not None and may(context, _DESCRIBE, name, log=False):
                each.name = name
    return await answer_parts(
        request, context, answer, asked=field, answered="responses", allowed=allowed,
        refused=refused, code=_DENIED,
    )  # fmt: skip


def configs(operation: Operation, answered: str) -> Callable[..., Awaitable[Any]]:
    """Settings of topics and groups need the operation on those, all others on the cluster."""

    async def rule(request: Any, context: Context, answer: Answer) -> Any:
        allowed: list[Any] = []
        slices = Slices()
        refused: dict[Resource, list[Any]] = {}
        for each in request.resources:
            await slices.count()
            resource = _CONFIGS.get(int(each.resource_type), Resource.CLUSTER)
            name = CLUSTER_NAME if resource is Resource.CLUSTER else each.resource_name
            if may(context, Need(operation, resource), name):
                allowed.append(each)
            else:
                refused.setdefault(resource, []).append(each)
        parts: list[Any] = []
        for resource, items in refused.items():
            rest = copy(request)
            rest.resources = tuple(items)
            errors = await refusal(rest, CODES[resource], context)
            parts += getattr(errors, answered)
        request.resources = tuple(allowed)
        response = await answer(request, context)
        setattr(response, answered, (*getattr(response, answered), *parts))
        return response

    return rule


async def journey(request: bytes, context: Context, answer: Answer) -> bytes:
    """Read on the topic, and Describe on the cluster: a journey names every group."""
    try:
        document = json.loads(request)
    except (ValueError, RecursionError):
        return bytes(await answer(request, context))  # which refuses it
    name = document.get("topic") if isinstance(document, dict) else None
    if not isinstance(name, str):
        return bytes(await answer(request, context))
    read = Need(Operation.READ, Resource.TOPIC)
    if may(context, read, name) and may(context, _DESCRIBE_CLUSTER):
        return bytes(await answer(request, context))
    message = f"{context.session.principal} needs Read on topic {name} and Describe on the cluster"
    error = {"code": "not_authorized", "message": message}
    return json.dumps({"journey": 1, "error": error}).encode()


async def key_offsets(request: bytes, context: Context, answer: Answer) -> bytes:
    """Read on the topic: who may read it finds its keys anyway."""
    return await _of_topic("key_offsets", Operation.READ, request, context, answer)


async def segments(request: bytes, context: Context, answer: Answer) -> bytes:
    """Describe on the topic: they say no more than its offsets and sizes."""
    return await _of_topic("segments", Operation.DESCRIBE, request, context, answer)


async def _of_topic(
    kind: str, operation: Operation, request: bytes, context: Context, answer: Answer
) -> bytes:
    """One of Ottla's own requests, whose answer has its name and version, about one topic."""
    try:
        document = json.loads(request)
    except (ValueError, RecursionError):
        return bytes(await answer(request, context))  # which refuses it
    name = document.get("topic") if isinstance(document, dict) else None
    if not isinstance(name, str) or may(context, Need(operation, Resource.TOPIC), name):
        return bytes(await answer(request, context))
    needed = operation.name.capitalize()
    message = f"{context.session.principal} needs {needed} on topic {name}"
    return json.dumps({kind: 1, "error": {"code": "not_authorized", "message": message}}).encode()


async def elections(request: bytes, context: Context, answer: Answer) -> bytes:
    """Describe on the cluster, and on each topic that is named."""
    if not may(context, _DESCRIBE_CLUSTER):
        message = f"{context.session.principal} needs Describe on the cluster"
        error = {"code": "not_authorized", "message": message}
        return json.dumps({"elections": 1, "error": error}).encode()
    document = json.loads(await answer(request, context))
    if "leaders" in document:
        shown, _ = await split(document["leaders"], _DESCRIBE, topic_in, context, log=False)
        document["leaders"] = shown
    return json.dumps(document).encode()
