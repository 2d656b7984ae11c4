"""The request for the last elections."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ottla.api.elections import KEY, handle_json
from ottla.api.table import find
from ottla.cluster.last_elections import NewController
from ottla.controller.elected import Elected, Why


def test_it_is_in_the_dispatch_table_and_takes_json() -> None:
    handler = find(KEY)
    assert handler is not None
    assert handler.takes_json


async def test_the_newest_come_first() -> None:
    kept = [(at_ms, Elected("t", at_ms, 1, 2, 5, Why.DOWN)) for at_ms in (3, 2)]
    seen = SimpleNamespace(
        since_ms=1,
        count=7,
        controllers=[NewController(1, 1, 8), NewController(2, 3, 9)],
        newest=lambda: iter(kept),
    )
    context: Any = SimpleNamespace(
        broker=SimpleNamespace(
            controller=SimpleNamespace(elections=seen), config=SimpleNamespace(id=3)
        )
    )
    answer = await handle_json({"elections": 1}, context)
    assert (answer["broker"], answer["since_ms"], answer["count"]) == (3, 1, 7)
    assert answer["controllers"] == [
        {"at_ms": 2, "broker": 3, "epoch": 9},
        {"at_ms": 1, "broker": 1, "epoch": 8},
    ]
    election = {"topic": "t", "former": 1, "leader": 2, "leader_epoch": 5, "why": "down"}
    assert answer["leaders"] == [
        {"at_ms": at_ms, "partition": at_ms, **election} for at_ms in (3, 2)
    ]
    refused = await handle_json({"elections": 2}, context)
    assert refused["error"]["code"] == "bad_request"
