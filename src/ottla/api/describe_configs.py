"""DescribeConfigs (key 32): settings of topics, groups and brokers, with the source of each.

A group does not have to exist: one that is made later has the settings described (KIP-848).

v1: sources and synonyms (KIP-226). v3: type and documentation (KIP-569). v4: flexible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.config_changes import ResourceType
from ottla.controller.config_entries import (
    ConfigEntry,
    broker_entries,
    cluster_entries,
    group_entries,
    topic_entries,
)
from ottla.controller.image import EVERY_BROKER, NO_CONFIG
from ottla.controller.naming import check_topic_name
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import Slices

KEY: Final = 32
ACCESS: Final = (
    Access(Operation.DESCRIBE_CONFIGS, Resource.TOPIC),
    Access(Operation.DESCRIBE_CONFIGS, Resource.GROUP),
    Access(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER),
)

RESOURCES_A_SLICE: Final = 10
"""Each has all settings of a topic or broker."""

_INCLUDE_DOCUMENTATION: Final = VersionedField(
    KEY, "DescribeConfigsRequest", "include_documentation", False
)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    results: list[Any] = []
    slices = Slices(RESOURCES_A_SLICE)
    # Each once, because an answer is large. Kafka answers as often as a resource is named.
    wanted = {(each.resource_type, each.resource_name): each for each in request.resources}
    for resource in wanted.values():
        await slices.count()
        entries: tuple[ConfigEntry, ...] = ()
        code, message = ErrorCode.none, None
        try:
            entries = _entries(
                resource.resource_type, resource.resource_name, resource.configuration_keys, context
            )
        except ApiError as error:
            code, message = error.code, error.message
        results.append(
            build.DescribeConfigsResult(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=tuple(_answer(entry, request, context) for entry in entries),
            )
        )
    return build.DescribeConfigsResponse(results=tuple(results))


def _entries(
    kind: int, name: str, keys: Sequence[str] | None, context: Context
) -> tuple[ConfigEntry, ...]:
    image, config = context.broker.image, context.broker.config
    if kind == ResourceType.TOPIC:
        check_topic_name(name)
        topic = image.topic(name)
        if topic is None:
            raise ApiError(
                ErrorCode.unknown_topic_or_partition,
                "This server does not host this topic-partition.",
            )
        return topic_entries(topic.overrides, config, keys)
    if kind == ResourceType.GROUP:
        if not name:
            raise ApiError(ErrorCode.invalid_request, "Group name must not be empty")
        return group_entries(image.groups.get(name, NO_CONFIG).values, config, keys)
    if kind == ResourceType.BROKER:
        if name == EVERY_BROKER:
            return cluster_entries(image.config(EVERY_BROKER).values, keys)
        if not name.isdecimal():
            message = f"Broker id must be an integer, but it is: {name}"
            raise ApiError(ErrorCode.invalid_request, message)
        if int(name) != config.id:
            raise ApiError(
                ErrorCode.invalid_request,
                f"Unexpected broker id, expected {config.id} or empty string, but received {name}",
            )
        return broker_entries(config, keys)
    raise ApiError(ErrorCode.invalid_request, f"Unsupported resource type: {kind}")


def _answer(entry: ConfigEntry, request: Any, context: Context) -> Any:
    build = context.messages
    documented = _INCLUDE_DOCUMENTATION(request)
    return build.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=(
            tuple(
                build.DescribeConfigsSynonym(
                    name=synonym.name, value=synonym.value, source=synonym.source
                )
                for synonym in entry.synonyms
            )
            if request.include_synonyms
            else ()
        ),
        config_type=entry.kind,
        documentation=entry.documentation if documented else None,
    )
