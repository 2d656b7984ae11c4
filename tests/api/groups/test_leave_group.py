"""LeaveGroup in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize("version", range(3))
async def test_one_member_leaves(api: Any, version: int) -> None:
    member = await api.stable()
    answer = await api.ask("leave_group", version, group_id="g", member_id="nobody")
    assert answer.error_code is ErrorCode.unknown_member_id
    answer = await api.ask("leave_group", version, group_id="g", member_id=member)
    assert answer.error_code is ErrorCode.none
    assert (await api.groups.describe("g")).state == "Empty"


@pytest.mark.parametrize("version", range(3, 6))
async def test_many_leave_or_are_removed(api: Any, version: int) -> None:
    await api.stable()
    members = tuple(
        api.struct("MemberIdentity", 13, version, member_id=member, group_instance_id=instance)
        for member, instance in (("", "i"), ("nobody", None))
    )
    answer = await api.ask("leave_group", version, group_id="g", members=members)
    assert answer.error_code is ErrorCode.none
    assert [(each.group_instance_id, each.error_code) for each in answer.members] == [
        ("i", ErrorCode.none),
        (None, ErrorCode.unknown_member_id),
    ]


@pytest.mark.parametrize("version", range(6))
async def test_a_group_without_a_name(api: Any, version: int) -> None:
    answer = await api.ask("leave_group", version, group_id="", member_id="m", members=())
    assert answer.error_code is ErrorCode.invalid_group_id
