"""GroupHistory: its fields, and what it says of a broker that is not the coordinator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.api.group_history import handle_json


class Histories:
    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []

    async def of(self, group: str, *, is_coordinator: bool) -> list[Any]:
        self.asked.append((group, is_coordinator))
        return [{"group": group, "number": 0}]


def context_of(histories: Histories, *, is_coordinator: bool = True) -> Any:
    groups = SimpleNamespace(is_coordinator_of=lambda group: is_coordinator)
    config = SimpleNamespace(id=3)
    return SimpleNamespace(
        broker=SimpleNamespace(histories=histories, groups=groups, config=config)
    )


@pytest.mark.parametrize("is_coordinator", [True, False])
async def test_every_broker_says_what_it_knows(is_coordinator: bool) -> None:
    histories = Histories()
    context = context_of(histories, is_coordinator=is_coordinator)
    assert await handle_json({"group_history": 1, "group": "g"}, context) == {
        "group_history": 1,
        "broker": 3,
        "is_coordinator": is_coordinator,
        "entries": [{"group": "g", "number": 0}],
    }
    assert histories.asked == [("g", is_coordinator)]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({}, "version 1"),
        ({"group_history": 2, "group": "g"}, "version 1"),
        ({"group_history": 1}, "`group` must be a name"),
        ({"group_history": 1, "group": ""}, "`group` must be a name"),
        ({"group_history": 1, "group": "g" * 40_000}, "`group` must be a name"),
        ({"group_history": 1, "group": ["g"]}, "`group` must be a name"),
        ({"group_history": 1, "group": "\ud800"}, "`group` must be a name"),
    ],
)
async def test_what_is_asked_wrongly_is_refused(request_: dict[str, Any], said: str) -> None:
    answer = await handle_json(request_, context_of(Histories()))
    assert answer["error"]["code"] == "bad_request"
    assert said in answer["error"]["message"]
