"""UpdateFeatures (key 57): changes the levels of the cluster's features (KIP-584).

v1: type of upgrade, and validation only. v2: one error for all. No feature is offered (ApiVersions
lists none), so no requested level is supported; a request to remove a missing feature succeeds, as
in Kafka.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ErrorCode

KEY: Final = 57
ACCESS: Final = (Access(Operation.ALTER, Resource.CLUSTER),)

_NOT_THERE: Final = 0


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    results = []
    refused: str | None = None
    for each in request.feature_updates:
        message = None
        if each.max_version_level != _NOT_THERE:
            message = f"The feature {each.feature} is not supported by this cluster."
            refused = refused or message
        code = ErrorCode.none if message is None else ErrorCode.invalid_update_version
        results.append(
            build.UpdatableFeatureResult(
                feature=each.feature, error_code=code, error_message=message
            )
        )
    # Since v2 all updates are made or none, and one error gives the reason.
    failed = refused is not None and context.version >= 2
    return build.UpdateFeaturesResponse(
        error_code=ErrorCode.invalid_update_version if failed else ErrorCode.none,
        error_message=refused if failed else None,
        results=tuple(results),
    )
