"""DescribeUserScramCredentials (key 50): which users have a password for SCRAM (KIP-554).

The response has the mechanisms and their iterations, and nothing of the password.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.users import iterations_of
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.runtime.slices import Slices

KEY: Final = 50
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.CLUSTER),)


async def handle(request: Any, context: Context) -> Any:
    users, slices = context.broker.image.users, Slices()
    wanted: Counter[str] = Counter()
    for each in request.users or ():
        await slices.count()
        wanted[each.name] += 1
    results: list[Any] = []
    for name in wanted or list(users):
        await slices.count()
        config = users.get(name)
        found = {} if config is None else iterations_of(config)
        if found or wanted:
            results.append(_result(name, wanted[name], found, context))
    return context.messages.DescribeUserScramCredentialsResponse(
        error_code=ErrorCode.none, error_message=None, results=tuple(results)
    )


def _result(name: str, times: int, found: dict[int, int], context: Context) -> Any:
    build = context.messages
    code, message = ErrorCode.none, None
    if times > 1:
        code, found = ErrorCode.duplicate_resource, {}
        message = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        )
    elif not found:
        code = ErrorCode.resource_not_found
        message = f"Attempt to describe a user credential that does not exist: {name}"
    infos = tuple(
        build.CredentialInfo(mechanism=mechanism, iterations=iterations)
        for mechanism, iterations in found.items()
    )
    return build.DescribeUserScramCredentialsResult(
        user=name, error_code=code, error_message=message, credential_infos=infos
    )
