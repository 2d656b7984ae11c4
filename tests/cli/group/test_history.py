"""Following a group's history."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.cli.group import history
from ottla.client.admin.group_history import GroupHistory
from ottla.client.client import Client


def entry(broker: int, number: int) -> dict[str, Any]:
    return {"broker": broker, "number": number, "at_ms": number}


def test_a_broker_that_was_away_has_nothing_shown_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [
        GroupHistory([entry(1, 1)], {2: "no response."}),
        GroupHistory([entry(2, 2), entry(1, 1), entry(2, 3)], {}),
        GroupHistory([], {1: "no response."}),
        GroupHistory([entry(1, 1), entry(1, 2), entry(2, 2)], {}),
    ]
    shown: list[tuple[int, int]] = []

    def asked(_client: Client, _group: str) -> GroupHistory:
        if not answers:
            raise KeyboardInterrupt
        return answers.pop(0)

    def show(each: dict[str, Any], *, as_json: bool) -> None:
        assert as_json
        shown.append((each["broker"], each["number"]))

    monkeypatch.setattr(history, "time", SimpleNamespace(sleep=lambda _: None))
    monkeypatch.setattr(history, "group_history", asked)
    monkeypatch.setattr(history, "show_entry", show)
    before = GroupHistory([entry(1, 1), entry(2, 2)], {})
    with pytest.raises(KeyboardInterrupt):
        history.follow_history(cast(Client, None), "g", before, 1.0, as_json=True)
    assert shown == [(2, 3), (1, 2)]
