"""ApiVersions (key 18): the request types that this broker supports, and their versions.

v0-2: error code and the list. v3 (KIP-511): the client names its software; flexible body, though
never a flexible header. v4 (KIP-511): feature levels below 1 are allowed. An unknown version is
answered in v0 with UNSUPPORTED_VERSION and the list, so that the client can choose another.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access
from ottla.protocol.errors import ErrorCode

KEY: Final = 18
ACCESS: Final[tuple[Access, ...]] = ()
"""Allowed before authentication."""

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
    return build.ApiVersionsResponse(
        error_code=code,
        api_keys=tuple(
            build.ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, first, last in keys
        ),
        finalized_features_epoch=context.broker.features_epoch,
    )


def _names_its_software(request: Any) -> bool:
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE_NAME.fullmatch(name) for name in names)
