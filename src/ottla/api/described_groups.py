"""What the descriptions of groups have in common: those of consumer groups (KIP-848), share groups
(KIP-932) and streams groups (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from ottla.api.context import Context
from ottla.api.describe_groups import ALL_OPERATIONS, NOT_REQUESTED
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices


class Described(Protocol):
    """A group, as its coordinator describes it."""

    @property
    def group(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def assignment_epoch(self) -> int: ...
    @property
    def assignor(self) -> str: ...
    @property
    def members(self) -> Sequence[Any]: ...


G = TypeVar("G", bound=Described)


async def nothing_more(described: Described, slices: Slices) -> dict[str, Any]:
    """A group whose description has no other fields."""
    return {}


async def described_groups(
    request: Any,
    context: Context,
    describe: Callable[[str], Awaitable[G]],
    member_of: Callable[[Any, Slices], Awaitable[Any]],
    more_of: Callable[[G, Slices], Awaitable[dict[str, Any]]] = nothing_more,
    *,
    is_enabled: bool,
) -> tuple[Any, ...]:
    """Each group once: a short request that repeats a large one would get gigabytes.

    `describe` asks the coordinator, and raises ApiError; `member_of` and `more_of` make a member of
    the response, and the fields that only groups of this type have.
    """
    found: dict[str, Any] = {}
    slices = Slices()

    async def described(group_id: str) -> Any:
        build = context.messages
        try:
            if not is_enabled:
                raise ApiError(ErrorCode.unsupported_version)
            group = await describe(group_id)
        except ApiError as error:
            return build.DescribedGroup(
                error_code=error.code,
                error_message=error.message or None,
                group_id=group_id,
                authorized_operations=NOT_REQUESTED,
            )
        members = []
        for each in group.members:
            await slices.count()
            members.append(await member_of(each, slices))
        requested = request.include_authorized_operations
        return build.DescribedGroup(
            group_id=group.group,
            group_state=group.state,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=group.assignor,
            members=tuple(members),
            authorized_operations=ALL_OPERATIONS if requested else NOT_REQUESTED,
            **await more_of(group, slices),
        )

    for group_id in request.group_ids:
        await slices.count()
        if group_id not in found:
            found[group_id] = await described(group_id)
    return tuple(found.values())
