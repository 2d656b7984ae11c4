"""ApiVersions (key 18): the request types that this broker supports, and their versions.

v0-2: error code and the list. v3 (KIP-511): the client names its software; flexible body, though
never a flexible header; the features that the broker supports, and their levels in the cluster
(KIP-584). v4: also features that may be absent, of level 0. v5 (KIP-1242): the client names the
cluster and the broker that it means. Another one answers REBOOTSTRAP_REQUIRED, without the list: an
address may have been given to a broker of another cluster, and a client that goes on by its old
metadata would read and write there. An unknown version is answered in v0 with UNSUPPORTED_VERSION
and the list, so that the client can choose another.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.features import SUPPORTED
from ottla.protocol.access import Access
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versioned_field import VersionedField

KEY: Final = 18
ACCESS: Final[tuple[Access, ...]] = ()
"""Allowed before authentication."""
UNKNOWN_EPOCH: Final = -1

_FEATURES: Final = 3
_ABSENT_FEATURES: Final = 4

_UNKNOWN_NODE: Final = -1
_CLUSTER_ID: Final = VersionedField[str | None](KEY, "ApiVersionsRequest", "cluster_id", None)
_NODE_ID: Final = VersionedField(KEY, "ApiVersionsRequest", "node_id", _UNKNOWN_NODE)

_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


async def handle(request: Any, context: Context) -> Any:
    """`request` is None if its version is unknown."""
    build = context.messages
    code = ErrorCode.unsupported_version if request is None else _refusal(request, context)
    is_refused = code in (ErrorCode.invalid_request, ErrorCode.rebootstrap_required)
    keys = () if is_refused else context.broker.api_versions
    api_keys = tuple(
        build.ApiVersion(api_key=key, min_version=first, max_version=last)
        for key, first, last in keys
    )
    features = _features(context) if context.version >= _FEATURES and keys else {}
    return build.ApiVersionsResponse(error_code=code, api_keys=api_keys, **features)


def _refusal(request: Any, context: Context) -> ErrorCode:
    """In the order of Kafka's checks (ApiVersionsRequest.isValid, KafkaApis)."""
    cluster_id, node_id = _CLUSTER_ID(request), _NODE_ID(request)
    if (cluster_id is None) != (node_id == _UNKNOWN_NODE):
        return ErrorCode.invalid_request
    if context.version >= 3 and not _names_its_software(request):
        return ErrorCode.invalid_request
    broker = context.broker
    if cluster_id is not None and (cluster_id, node_id) != (
        broker.image.cluster_id,
        broker.config.id,
    ):
        return ErrorCode.rebootstrap_required
    return ErrorCode.none


def _features(context: Context) -> dict[str, Any]:
    build, image = context.messages, context.broker.image
    supported = tuple(
        build.SupportedFeatureKey(name=feature, min_version=first, max_version=last)
        for feature, first, last in SUPPORTED
        # Clients of version 3 cannot read a range that begins at 0 (KAFKA-17011).
        if first > 0 or context.version >= _ABSENT_FEATURES
    )
    finalized = tuple(
        build.FinalizedFeatureKey(name=feature, max_version_level=level, min_version_level=level)
        for feature, level in image.features.items()
    )
    version = image.features_version
    return {
        "supported_features": supported,
        "finalized_features_epoch": UNKNOWN_EPOCH if version is None else version,
        "finalized_features": finalized,
    }


def _names_its_software(request: Any) -> bool:
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE_NAME.fullmatch(name) for name in names)
