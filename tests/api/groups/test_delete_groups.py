"""DeleteGroups in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ApiError, ErrorCode


@pytest.mark.parametrize("version", range(4))
async def test_empty_groups_are_deleted(api: Any, version: int) -> None:
    await api.stable()
    await api.commit(9, 1, group_id="simple")
    names = ("g", "simple", "no", "simple")
    answer = await api.ask("delete_groups", version, groups_names=names)
    assert [(each.group_id, each.error_code) for each in answer.results] == [
        ("g", ErrorCode.non_empty_group),
        ("simple", ErrorCode.none),
        ("no", ErrorCode.group_id_not_found),
    ]
    assert [getattr(each, "error_message", None) for each in answer.results] == [None] * 3
    assert await api.groups.fetch_all("simple") == {}
    assert (await api.groups.describe("g")).state == "Stable"


@pytest.mark.parametrize("version", range(4))
async def test_a_refusal_says_why_since_version_3(
    api: Any, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(group: str) -> ErrorCode:
        raise ApiError(ErrorCode.coordinator_not_available, "away for a moment")

    monkeypatch.setattr(api.groups, "delete_group", refuse)
    (result,) = (await api.ask("delete_groups", version, groups_names=("g",))).results
    assert result.error_code is ErrorCode.coordinator_not_available
    message = getattr(result, "error_message", None)
    assert message == ("away for a moment" if version == 3 else None)
