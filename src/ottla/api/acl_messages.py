"""What the three requests about ACLs have in common."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.cluster.acl_store import AclStore
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.security.acl_filter import AclFilter

MAX_ACLS: Final = 10_000
"""Of one request. Kafka has no limit; each is a write to the tree."""
NO_AUTHORIZER: Final = "No Authorizer is configured on the broker"


def store(context: Context) -> AclStore:
    """Raises ApiError SECURITY_DISABLED without an authorizer."""
    found = context.broker.acls
    if found is None:
        raise ApiError(ErrorCode.security_disabled, NO_AUTHORIZER)
    return found


def filter_of(asked: Any) -> AclFilter:
    """The filter of a request's fields. Raises ApiError INVALID_REQUEST."""
    found = AclFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )
    if found.is_unknown:
        raise ApiError(ErrorCode.invalid_request, f"The filter has unknown elements: {found}")
    return found
