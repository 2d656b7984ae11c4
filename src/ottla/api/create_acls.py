"""CreateAcls (key 30, KIP-140): adds ACLs. v1 (KIP-290): prefixed patterns. v2: flexible. v3: user
resources (KIP-373).
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.acl_messages import MAX_ACLS, store
from ottla.api.context import Context
from ottla.protocol.access import CLUSTER_NAME, Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices
from ottla.security.acl import Acl, Entry, Pattern, PatternType, Permission, is_host
from ottla.security.principal import parse_principal

KEY: Final = 30
ACCESS: Final = (Access(Operation.ALTER, Resource.CLUSTER),)


async def handle(request: Any, context: Context) -> Any:
    wanted: list[Acl | ApiError] = []
    slices = Slices()
    is_too_long = len(request.creations) > MAX_ACLS
    for each in request.creations:
        await slices.count()
        try:
            acls = store(context)
            if is_too_long:
                raise ApiError(ErrorCode.invalid_request, f"More than {MAX_ACLS} ACLs at once.")
            wanted.append(_acl(each))
        except ApiError as error:
            wanted.append(error)
    valid = [each for each in wanted if isinstance(each, Acl)]
    failed = await acls.add(valid) if valid else {}
    results = []
    for each in wanted:
        await slices.count()
        why = each if isinstance(each, ApiError) else failed.get(each.pattern)
        results.append(
            context.messages.AclCreationResult(
                error_code=ErrorCode.none if why is None else why.code,
                error_message=None if why is None else why.message,
            )
        )
    return context.messages.CreateAclsResponse(results=tuple(results))


def _acl(each: Any) -> Acl:
    """Raises ApiError INVALID_REQUEST, with what is wrong (AclApis, AclControlManager)."""
    name = each.resource_name
    pattern_type = getattr(each, "resource_pattern_type", PatternType.LITERAL)
    try:
        pattern = Pattern(Resource(each.resource_type), name, PatternType(pattern_type))
        entry = Entry(
            str(parse_principal(each.principal)),
            each.host,
            Operation(each.operation),
            Permission(each.permission_type),
        )
    except ValueError as error:
        raise ApiError(ErrorCode.invalid_request, f"Invalid ACL: {error}") from None
    message = _why_not(pattern, entry)
    if message is not None:
        raise ApiError(ErrorCode.invalid_request, message)
    return Acl(pattern, entry)


def _why_not(pattern: Pattern, entry: Entry) -> str | None:
    if pattern.resource is Resource.CLUSTER and pattern.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not pattern.name:
        return "Invalid empty resource name"
    if "/" in pattern.name or "\0" in pattern.name or pattern.name in (".", ".."):
        return "The name of a resource must be that of a node in the coordination tree: no slash"
    if not entry.host or not is_host(entry.host):
        return f"Invalid host {entry.host!r}: expected *, an address, or a range such as 10.0.0.0/8"
    return None
