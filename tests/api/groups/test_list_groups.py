"""ListGroups in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ApiError, ErrorCode


@pytest.mark.parametrize("version", range(6))
async def test_groups_are_listed(api: Any, version: int) -> None:
    await api.stable()
    await api.commit(9, 1, group_id="simple")
    answer = await api.ask("list_groups", version)
    assert answer.error_code is ErrorCode.none
    found = {group.group_id: group for group in answer.groups}
    kinds = {name: group.protocol_type for name, group in found.items()}
    assert kinds == {"g": "consumer", "simple": ""}
    assert getattr(found["g"], "group_state", "Stable") == "Stable"
    assert getattr(found["g"], "group_type", "classic") == "classic"


@pytest.mark.parametrize(
    ("states", "types", "names"),
    [
        (("stable",), (), ["g"]),
        (("EMPTY ", "Dead"), (), ["simple"]),
        ((), ("Classic",), ["g", "simple"]),
        ((), ("consumer",), []),
        ((), ("nonsense",), []),
        (("Stable",), ("classic", "share"), ["g"]),
    ],
)
async def test_filters(
    api: Any, states: tuple[str, ...], types: tuple[str, ...], names: list[str]
) -> None:
    await api.stable()
    await api.commit(9, 1, group_id="simple")
    answer = await api.ask("list_groups", 5, states_filter=states, types_filter=types)
    assert sorted(group.group_id for group in answer.groups) == names


async def test_partitions_of_other_brokers_are_omitted(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(partition: int) -> None:
        raise ApiError(ErrorCode.not_coordinator)

    monkeypatch.setattr(api, "open", elsewhere)
    answer = await api.ask("list_groups", 5)
    assert (answer.error_code, answer.groups) == (ErrorCode.none, ())
    api.runtime.close()
    answer = await api.ask("list_groups", 5)
    assert answer.error_code is ErrorCode.coordinator_not_available
