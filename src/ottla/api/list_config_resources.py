"""ListConfigResources (key 74): resources with settings (v0: client metrics, KIP-714; KIP-1142)."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.config_changes import ResourceType
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versioned_field import VersionedField

KEY: Final = 74
ACCESS: Final = (Access(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER),)

_RESOURCE_TYPES: Final = VersionedField[tuple[int, ...]](
    KEY, "ListConfigResourcesRequest", "resource_types", ()
)


async def handle(request: Any, context: Context) -> Any:
    build, image = context.messages, context.broker.image
    supported = (ResourceType.CLIENT_METRICS,) if context.version == 0 else tuple(ResourceType)
    wanted = _RESOURCE_TYPES(request) or supported
    if any(kind not in supported for kind in wanted):
        return build.ListConfigResourcesResponse(error_code=ErrorCode.unsupported_version)
    # Client metrics and loggers have no settings here.
    found: list[Any] = []
    if ResourceType.BROKER in wanted:
        found += [_answer(str(broker), ResourceType.BROKER, context) for broker in image.brokers]
    if ResourceType.TOPIC in wanted:
        found += [_answer(topic, ResourceType.TOPIC, context) for topic in image.topics]
    if ResourceType.GROUP in wanted:
        found += [_answer(group, ResourceType.GROUP, context) for group in image.groups]
    return build.ListConfigResourcesResponse(config_resources=tuple(found))


def _answer(name: str, kind: ResourceType, context: Context) -> Any:
    return context.messages.ConfigResource(resource_name=name, resource_type=kind)
