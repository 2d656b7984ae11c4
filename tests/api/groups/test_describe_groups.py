"""DescribeGroups in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ApiError, ErrorCode


@pytest.mark.parametrize("version", range(7))
async def test_a_stable_group(api: Any, version: int) -> None:
    member_id = await api.stable()
    answer = await api.ask("describe_groups", version, groups=("g",))
    (group,) = answer.groups
    assert (group.error_code, group.group_id) == (ErrorCode.none, "g")
    described = (group.group_state, group.protocol_type, group.protocol_data)
    assert described == ("Stable", "consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id) == (member_id, "client")
    assert (member.client_host, member.member_assignment) == ("/127.0.0.1", b"own")
    assert member.member_metadata == b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
    assert getattr(member, "group_instance_id", "i") == "i"
    assert getattr(group, "authorized_operations", -(2**31)) == -(2**31)


@pytest.mark.parametrize("version", range(7))
async def test_an_unknown_group(api: Any, version: int) -> None:
    answer = await api.ask("describe_groups", version, groups=("no",))
    (group,) = answer.groups
    assert group.group_state == "Dead"
    if version >= 6:
        assert group.error_code is ErrorCode.group_id_not_found
        assert group.error_message == "Group no not found."
    else:
        assert group.error_code is ErrorCode.none


async def test_the_authorized_operations_of_a_group(api: Any) -> None:
    await api.stable()
    request = {"groups": ("g", "no"), "include_authorized_operations": True}
    found, missing = (await api.ask("describe_groups", 6, **request)).groups
    assert found.authorized_operations == 0b110101001000
    assert missing.authorized_operations == -(2**31)


async def test_an_error_of_the_coordinator(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(partition: int) -> None:
        raise ApiError(ErrorCode.not_coordinator)

    monkeypatch.setattr(api, "open", elsewhere)
    (group,) = (await api.ask("describe_groups", 5, groups=("g",))).groups
    assert (group.error_code, group.group_state) == (ErrorCode.not_coordinator, "")


async def test_a_group_that_is_repeated_is_described_once(api: Any) -> None:
    await api.stable()
    answer = await api.ask("describe_groups", 5, groups=("g", "no", "g", "no"))
    assert [group.group_id for group in answer.groups] == ["g", "no"]
