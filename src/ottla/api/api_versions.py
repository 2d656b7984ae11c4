"""ApiVersions (key 18): the request types that this broker supports, and their versions.

v0-2: error code and the list. v3 (KIP-511): the client names its software; flexible body, though
never a flexible header; the features that the broker supports, and their levels in the cluster
(KIP-584). v4: also features that may be absent, of level 0. An unknown version is answered
in v0 with UNSUPPORTED_VERSION and the list, so that the client can choose another.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.features import SUPPORTED
from ottla.protocol.access import Access
from ottla.protocol.errors import ErrorCode

KEY: Final = 18
ACCESS: Final[tuple[Access, ...]] = ()
"""Allowed before authentication."""
UNKNOWN_EPOCH: Final = -1

_FEATURES: Final = 3
_ABSENT_FEATURES: Final = 4

_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


async def handle(request: Any, context: Context) -> Any:
    """`request` is None if its version is unknown."""
    build = context.messages
    code = ErrorCode.none
    if request is None:
        code = ErrorCode.unsupported_version
    elif context.version >= 3 and not _names_its_software(request):
        code = ErrorCode.invalid_request
    keys = () if code is ErrorCode.invalid_request else context.broker.api_versions
    api_keys = tuple(
        build.ApiVersion(api_key=key, min_version=first, max_version=last)
        for key, first, last in keys
    )
    features = _features(context) if context.version >= _FEATURES and keys else {}
    return build.ApiVersionsResponse(error_code=code, api_keys=api_keys, **features)


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
