"""DeleteGroups in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize("version", range(3))
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
    assert await api.groups.fetch_all("simple") == {}
    assert (await api.groups.describe("g")).state == "Stable"
