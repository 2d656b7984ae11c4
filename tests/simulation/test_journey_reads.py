"""What a journey says of a group, beside what its members have sent."""

from __future__ import annotations

from typing import Any

import pytest
from faults.history import Committed
from simulation.broker import FIRST_WALL_MS
from simulation.journey_reads import Asked, ReadsSaid, commits_of
from simulation.world import run

from ottla.journey import explain
from ottla.journey.explain_groups import explain_groups
from ottla.journey.facts import ALL_GROUPS
from ottla.tracing import trace as tracing
from ottla.tracing.group_coordinators import FoundGroups, find_groups

OFFSET = 4
ALL = {"complete": True}
EVENTS = [
    Committed(120, 100, 1, ((0, 3), (1, 90)), None),
    Committed(220, 200, 1, ((0, 7),), None),
    Committed(320, 300, 1, ((0, 9),), "no answer"),
]


def when(since_ms: int | None, until_ms: int | None) -> dict[str, Any]:
    since, until = (None if ms is None else FIRST_WALL_MS + ms for ms in (since_ms, until_ms))
    return {"since_ms": since, "until_ms": until}


def reader(since_ms: int | None = 210, until_ms: int | None = 210, **more: Any) -> dict[str, Any]:
    return {
        "group": "g",
        "state": "read",
        "committed_offset": 9,
        "when": when(since_ms, until_ms),
        "certain": "doubt" not in more,
        "doubt": None,
        **more,
    }


NOT_YET = {"group": "g", "state": "not_yet", "committed_offset": 3}


def wrong(*read: dict[str, Any], began_ms: int = 1000, **more: Any) -> str | None:
    said = {"offset": OFFSET, "read": list(read), "groups": ALL}
    known: dict[str, Any] = {"has_clocks": True, "may_lose_offsets": False}
    asked = Asked("t", 0, said, began_ms, began_ms + 10, False, more.pop("sent_ms", None))
    return ReadsSaid(asked, commits_of(EVENTS, 0), **(known | more)).untrue("g")


def test_what_is_true_is_let_pass() -> None:
    assert wrong(reader()) is None
    assert wrong(reader(150, 250)) is None
    assert wrong(reader(None, None)) is None
    assert wrong(reader(doubt="first_commit")) is None
    assert wrong(NOT_YET, began_ms=150) is None
    assert wrong(NOT_YET, may_lose_offsets=True) is None


@pytest.mark.parametrize(
    ("read", "what"),
    [
        ((), "has committed nothing"),
        ((NOT_YET,), "has committed 7"),
        ((reader(committed_offset=8),), "never committed"),
        ((reader(doubt="outside"),), "no member has committed"),
        ((reader(state="set_back"),), "set back"),
        ((reader(100, 190),), "no commit was then"),
        ((reader(230, 330),), "had committed 7"),
    ],
)
def test_what_is_untrue_is_found(read: tuple[dict[str, Any], ...], what: str) -> None:
    assert what in (wrong(*read) or "")


def test_nobody_reads_what_was_not_sent() -> None:
    assert "it was sent at 215" in (wrong(reader(205, 212), sent_ms=215) or "")


async def only_its_own_groups(topic: str, partition: int, offset: int, broker: Any) -> FoundGroups:
    """Other coordinators are not asked, and that is not said."""
    found = await find_groups(topic, partition, offset, broker)
    own = {
        group: position
        for group, position in found.positions.items()
        if position.coordinator == broker.config.id
    }
    return FoundGroups(own, (), ALL_GROUPS)


def an_hour_early(*args: Any) -> list[dict[str, Any]]:
    """Each group has read everything an hour before."""
    groups = explain_groups(*args)
    for group in groups:
        for side in ("since_ms", "until_ms"):
            if group.get("certain") and group["when"][side] is not None:
                group["when"][side] -= 3_600_000
    return groups


def nobody_has_read(*args: Any) -> list[dict[str, Any]]:
    return [{**group, "state": "not_yet"} for group in explain_groups(*args)]


def test_planted_untruths_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "explain_groups", an_hour_early)
    assert "says of the group: read by" in str(run(1).violation)
    monkeypatch.setattr(explain, "explain_groups", nobody_has_read)
    assert "not_yet, and the group has committed" in str(run(1).violation)


def test_a_leader_that_knows_only_its_own_groups_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracing, "find_groups", only_its_own_groups)
    found = [run(seed).violation for seed in range(3)]
    assert any("the group has committed nothing" in str(violation) for violation in found)
