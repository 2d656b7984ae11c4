"""JoinGroup in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize("version", range(10))
async def test_a_member_joins(api: Any, version: int) -> None:
    answer = await api.join(version)
    if version >= 4:
        assert answer.error_code is ErrorCode.member_id_required
        answer = await api.join(version, answer.member_id)
    assert answer.error_code is ErrorCode.none
    assert (answer.generation_id, answer.protocol_name) == (1, "range")
    assert answer.leader == answer.member_id == answer.members[0].member_id
    assert answer.members[0].metadata == b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
    assert getattr(answer, "protocol_type", "consumer") == "consumer"


@pytest.mark.parametrize("version", [5, 6, 7, 8, 9])
async def test_a_static_member_joins_with_one_request(api: Any, version: int) -> None:
    answer = await api.join(version, group_instance_id="i")
    assert answer.members[0].group_instance_id == "i"
    assert answer.member_id.startswith("i-")


@pytest.mark.parametrize("version", range(10))
async def test_a_refusal_fits_every_version(api: Any, version: int) -> None:
    answer = await api.join(version, "nobody")
    assert (answer.error_code, answer.generation_id) == (ErrorCode.unknown_member_id, -1)
    assert answer.protocol_name == ("" if version < 7 else None)


async def test_a_static_leader_that_returns_skips_the_assignment(api: Any) -> None:
    await api.stable()
    answer = await api.join(9, group_instance_id="i")
    assert (answer.skip_assignment, len(answer.members)) == (True, 1)


async def test_version_0_has_one_timeout_for_both(api: Any) -> None:
    await api.join(0, session_timeout=20_000)
    (member,) = api.shard.groups["g"].members
    group = api.shard.groups["g"]
    assert group.members[member].rebalance_timeout_ms == 20_000
    assert group.members[member].client_host == "/127.0.0.1"


async def test_the_protocols_of_a_member_are_limited(api: Any) -> None:
    protocols = tuple(
        api.struct("JoinGroupRequestProtocol", 11, 9, name=f"p{index}", metadata=b"")
        for index in range(101)
    )
    answer = await api.join(9, group_instance_id="i", protocols=protocols)
    assert answer.error_code is ErrorCode.invalid_request
    answer = await api.join(9, group_instance_id="i", protocols=protocols[:100])
    assert answer.error_code is ErrorCode.none
