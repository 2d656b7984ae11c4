"""AlterUserScramCredentials (key 51): sets and removes the passwords of users for SCRAM (KIP-554).

The client salts the password; the broker keeps keys of it that cannot be used to log in.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.plan import refused
from ottla.controller.users import Deletion, Upsertion, UserOutcome
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.runtime.slices import Slices

KEY: Final = 51
ACCESS: Final = (Access(Operation.ALTER, Resource.CLUSTER),)


async def handle(request: Any, context: Context) -> Any:
    slices = Slices()
    deletions: list[Deletion] = []
    upsertions: list[Upsertion] = []
    for each in request.deletions:
        await slices.count()
        deletions.append(Deletion(each.name, each.mechanism))
    for each in request.upsertions:
        await slices.count()
        salt, salted = bytes(each.salt), bytes(each.salted_password)
        upsertions.append(Upsertion(each.name, each.mechanism, each.iterations, salt, salted))
    results: list[Any] = []
    for user, outcome in await _altered(deletions, upsertions, context):
        await slices.count()
        results.append(
            context.messages.AlterUserScramCredentialsResult(
                user=user, error_code=outcome.code, error_message=outcome.message
            )
        )
    return context.messages.AlterUserScramCredentialsResponse(results=tuple(results))


async def _altered(
    deletions: list[Deletion], upsertions: list[Upsertion], context: Context
) -> tuple[UserOutcome, ...]:
    try:
        return await context.broker.controller.alter_credentials(deletions, upsertions)
    except ApiError as error:
        users = dict.fromkeys([each.user for each in deletions])
        users |= dict.fromkeys([each.user for each in upsertions])
        return tuple(UserOutcome(user, refused(error)) for user in users)
