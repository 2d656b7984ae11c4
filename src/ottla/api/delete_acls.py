"""DeleteAcls (key 31, KIP-140): removes the ACLs that filters match. v1 (KIP-290): pattern types.
v2: flexible. v3: user resources (KIP-373).
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.acl_messages import filter_of, store
from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices
from ottla.security.acl import Acl
from ottla.security.acl_filter import AclFilter

KEY: Final = 31
ACCESS: Final = (Access(Operation.ALTER, Resource.CLUSTER),)
MAX_FILTERS: Final = 100
"""Of one request: each is compared with every ACL."""


async def handle(request: Any, context: Context) -> Any:
    wanted: list[AclFilter | ApiError] = []
    for each in request.filters:
        try:
            acls = store(context)
            if len(request.filters) > MAX_FILTERS:
                raise ApiError(ErrorCode.invalid_request, f"More than {MAX_FILTERS} filters.")
            wanted.append(filter_of(each))
        except ApiError as error:
            wanted.append(error)
    valid = [each for each in wanted if isinstance(each, AclFilter)]
    matched, failures = await acls.remove(valid) if valid else ([], [])
    found = iter(matched)
    build, results = context.messages, []
    for each in wanted:
        if isinstance(each, ApiError):
            results.append(
                build.DeleteAclsFilterResult(error_code=each.code, error_message=each.message)
            )
            continue
        failure = failures[0] if failures else None
        results.append(
            build.DeleteAclsFilterResult(
                error_code=ErrorCode.none if failure is None else failure.code,
                error_message=None if failure is None else failure.message,
                matching_acls=await _matching(next(found), context),
            )
        )
    return build.DeleteAclsResponse(filter_results=tuple(results))


async def _matching(acls: list[Acl], context: Context) -> tuple[Any, ...]:
    found, slices = [], Slices()
    for pattern, entry in acls:
        await slices.count()
        found.append(
            context.messages.DeleteAclsMatchingAcl(
                error_code=ErrorCode.none,
                resource_type=pattern.resource,
                resource_name=pattern.name,
                pattern_type=pattern.type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
        )
    return tuple(found)
