"""Heartbeat in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize("version", range(5))
async def test_a_member_beats(api: Any, version: int) -> None:
    member = {"group_id": "g", "member_id": await api.stable()}
    answer = await api.ask("heartbeat", version, generation_id=1, **member)
    assert answer.error_code is ErrorCode.none
    answer = await api.ask("heartbeat", version, generation_id=0, **member)
    assert answer.error_code is ErrorCode.illegal_generation


@pytest.mark.parametrize("version", [3, 4])
async def test_a_replaced_static_member_is_fenced(api: Any, version: int) -> None:
    old = await api.stable()
    await api.join(9, group_instance_id="i")
    request = {"group_id": "g", "generation_id": 1, "member_id": old, "group_instance_id": "i"}
    answer = await api.ask("heartbeat", version, **request)
    assert answer.error_code is ErrorCode.fenced_instance_id
