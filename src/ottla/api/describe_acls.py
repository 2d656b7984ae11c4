"""DescribeAcls (key 29, KIP-140): the ACLs that a filter matches, by pattern. v1 (KIP-290): pattern
types. v2: flexible. v3: user resources (KIP-373).
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.acl_messages import filter_of, store
from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.runtime.slices import Slices
from ottla.security.acl import Entry, Pattern

KEY: Final = 29
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.CLUSTER),)


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    try:
        acls = store(context).acls()
        wanted = filter_of(request)
    except ApiError as error:
        return build.DescribeAclsResponse(error_code=error.code, error_message=error.message)
    found: dict[Pattern, list[Entry]] = {}
    for acl in acls:
        await slices.count()
        if wanted.matches(acl):
            found.setdefault(acl.pattern, []).append(acl.entry)
    resources = []
    for pattern, entries in found.items():
        descriptions = []
        for entry in entries:
            await slices.count()
            descriptions.append(
                build.AclDescription(
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission,
                )
            )
        resources.append(
            build.DescribeAclsResource(
                resource_type=pattern.resource,
                resource_name=pattern.name,
                pattern_type=pattern.type,
                acls=tuple(descriptions),
            )
        )
    return build.DescribeAclsResponse(resources=tuple(resources))
