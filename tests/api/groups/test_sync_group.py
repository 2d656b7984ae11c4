"""SyncGroup in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize("version", range(6))
async def test_the_leader_sends_the_assignment(api: Any, version: int) -> None:
    joined = await api.join(3)
    answer = await api.sync(version, joined.member_id, b"own")
    assert (answer.error_code, answer.assignment) == (ErrorCode.none, b"own")
    assert getattr(answer, "protocol_name", "range") == "range"


@pytest.mark.parametrize("version", range(6))
async def test_a_refusal_fits_every_version(api: Any, version: int) -> None:
    answer = await api.sync(version, "nobody", b"")
    assert (answer.error_code, answer.assignment) == (ErrorCode.unknown_member_id, b"")


async def test_newer_clients_must_name_the_protocol(api: Any) -> None:
    joined = await api.join(3)
    answer = await api.sync(5, joined.member_id, b"", protocol_name=None)
    assert answer.error_code is ErrorCode.inconsistent_group_protocol


async def test_many_assignments_are_read_in_slices(api: Any) -> None:
    member = (await api.join(9, group_instance_id="i")).member_id
    others = tuple(
        api.struct("SyncGroupRequestAssignment", 14, 5, member_id=f"m{index}", assignment=b"x")
        for index in range(20_000)
    )
    own = api.struct("SyncGroupRequestAssignment", 14, 5, member_id=member, assignment=b"own")
    answer = await api.sync(5, member, b"", assignments=(*others, own))
    assert (answer.error_code, answer.assignment) == (ErrorCode.none, b"own")
    assert api.turns >= 20_000 // 500
