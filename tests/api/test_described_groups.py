"""What descriptions of groups have in common. Of each type: `groups/test_*_describe.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.turns import turns_of_others

from ottla.api.described_groups import described_groups
from ottla.protocol.messages import messages_of
from ottla.runtime.slices import SLICE, Slices

SHARE_GROUP_DESCRIBE = 77
MEMBERS = 4 * SLICE


async def test_others_have_their_turn_between_members_that_have_nothing() -> None:
    asked: list[str] = []
    build = messages_of(SHARE_GROUP_DESCRIBE, 1)
    context: Any = SimpleNamespace(messages=build)
    request = SimpleNamespace(group_ids=("g", "g"), include_authorized_operations=False)

    async def describe(group: str) -> Any:
        asked.append(group)
        return SimpleNamespace(
            group=group, state="Stable", epoch=1, assignment_epoch=1, assignor="simple",
            members=range(MEMBERS),
        )  # fmt: skip

    async def member_of(number: int, _slices: Slices) -> int:
        return number

    work = described_groups(request, context, describe, member_of, is_enabled=True)
    (group,), turns = await turns_of_others(work)
    assert asked == ["g"]
    assert len(group.members) == MEMBERS
    assert turns >= MEMBERS // SLICE - 1
