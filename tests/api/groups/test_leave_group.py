"""LeaveGroup in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ApiError, ErrorCode


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


@pytest.mark.parametrize("group", ["g", "unknown"])
async def test_many_leave_in_parts(api: Any, group: str) -> None:
    """One of them is a member, and is named last."""
    member = await api.stable()
    nobody = api.struct("MemberIdentity", 13, 5, member_id="nobody")
    last = api.struct("MemberIdentity", 13, 5, member_id=member)
    answer = await api.ask("leave_group", 5, group_id=group, members=(nobody,) * 20_000 + (last,))
    unknown = ErrorCode.unknown_member_id
    errors = [each.error_code for each in answer.members]
    assert errors == [unknown] * 20_000 + [ErrorCode.none if group == "g" else unknown]
    assert (await api.groups.describe("g")).state == ("Empty" if group == "g" else "Stable")
    assert api.most_calls < 40_000


@pytest.mark.parametrize("failing", [0, 2])
async def test_a_coordinator_that_moves_while_many_leave(
    api: Any, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    await api.stable()
    decide, asked = api.runtime.decide, 0

    async def moves(index: int, decider: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked > failing:
            raise ApiError(ErrorCode.not_coordinator)
        return await decide(index, decider)

    monkeypatch.setattr(api.runtime, "decide", moves)
    nobody = api.struct("MemberIdentity", 13, 5, member_id="nobody")
    answer = await api.ask("leave_group", 5, group_id="g", members=(nobody,) * 3_000)
    if not failing:
        assert answer.error_code is ErrorCode.not_coordinator
        return
    errors = [each.error_code for each in answer.members]
    moved = [ErrorCode.not_coordinator] * 1_000
    assert errors == [ErrorCode.unknown_member_id] * 2_000 + moved
