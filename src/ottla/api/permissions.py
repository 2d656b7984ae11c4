"""Asking for permission in the handlers' room: names of resources, refusals, splitting a request.

A request that names many resources is answered for those that the client may use, and each other
one gets its error; as in KafkaApis, one refusal does not affect the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from ottla.api.context import Context
from ottla.network.authorization import Authorization
from ottla.network.handlers import Answer
from ottla.protocol.access import CLUSTER_NAME, Operation, Resource
from ottla.protocol.error_response import error_response
from ottla.protocol.errors import ErrorCode
from ottla.runtime.slices import SLICE, Slices

CODES: Final = {
    Resource.TOPIC: ErrorCode.topic_authorization_failed,
    Resource.GROUP: ErrorCode.group_authorization_failed,
    Resource.CLUSTER: ErrorCode.cluster_authorization_failed,
    Resource.TRANSACTIONAL_ID: ErrorCode.transactional_id_authorization_failed,
}
_NO_ID: Final = UUID(int=0)


class Need(NamedTuple):
    """An operation on a resource of this type."""

    operation: Operation
    resource: Resource


def authorization(context: Context) -> Authorization:
    """That of a broker with an authorizer."""
    found = context.broker.authorization
    assert found is not None
    return found


def may(context: Context, need: Need, name: str = CLUSTER_NAME, *, log: bool = True) -> bool:
    """Whether the client may do that to the resource with this name."""
    return authorization(context).allows(context.session, *need, name, log=log)


async def refusal(request: Any, code: ErrorCode, context: Context, *, is_part: bool = False) -> Any:
    """The response that has this error everywhere. Made in a thread: it may be long."""
    make = partial(error_response, request, code, is_part=is_part)
    return await context.broker.cpu_thread.run(make)


def topic_name(item: Any, context: Context) -> str | None:
    """The topic that a part of a request names; None if it has the id of no topic."""
    name = (
        getattr(item, "name", None)
        or getattr(item, "topic", None)
        or getattr(item, "topic_name", None)
    )
    if isinstance(name, str):
        return name
    topic_id = getattr(item, "topic_id", None)
    if topic_id is None or topic_id == _NO_ID:
        return None
    topic = context.broker.image.topic_by_id(topic_id)
    return None if topic is None else topic.name


def topic_in(entry: Any, context: Context) -> str | None:
    """The topic that an entry of a JSON answer names."""
    return str(entry["topic"])


NameOf = Callable[[Any, Context], str | None]


async def split(
    items: Sequence[Any], need: Need, name_of: NameOf, context: Context, *, log: bool = True
) -> tuple[list[Any], list[Any]]:
    """Those that the client may use, or that name nothing, and the others."""
    allowed: list[Any] = []
    refused: list[Any] = []
    slices = Slices()
    for item in items:
        await slices.count()
        name = name_of(item, context)
        ok = name is None or may(context, need, name, log=log)
        (allowed if ok else refused).append(item)
    return allowed, refused


async def answer_parts(
    request: Any,
    context: Context,
    answer: Answer,
    *,
    asked: str,
    answered: str,
    refused: Sequence[Any],
    allowed: Sequence[Any],
    code: ErrorCode,
) -> Any:
    """The handler's answer to what is allowed, with the errors of the rest. `asked` and `answered`
    are the fields of request and response that list the resources.
    """
    if not refused:
        return await answer(request, context)
    rest = copy(request)
    setattr(rest, asked, tuple(refused))
    errors = (
        await refusal(rest, code, context, is_part=True)
        if len(refused) > SLICE
        else error_response(rest, code, is_part=True)
    )
    if allowed:
        setattr(request, asked, tuple(allowed))
        response = await answer(request, context)
        if response is None:
            return None
        setattr(response, answered, (*getattr(response, answered), *getattr(errors, answered)))
        return response
    if hasattr(errors, "error_code"):
        errors.error_code = ErrorCode.none  # it is that of the whole request
    return errors
