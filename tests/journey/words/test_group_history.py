"""Sentences of the history of a group."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.groups.history.events import Why
from ottla.journey.words.group_history import (
    cause_text,
    causes_texts,
    member_name,
    moved_text,
    moves_texts,
    outcome_text,
)

MEMBER = {"id": "app-1-abcdef", "client_id": "app-1", "instance_id": None, "host": "/10.0.0.7"}


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "group": "g", "type": "consumer", "at_ms": 0, "first_epoch": 4, "epoch": 6,
        "end": "stable", "lasted_ms": 1_200, "members": 3, "causes": [], "more_causes": {},
        "moves": [], "moved": 6, "is_complete": True,
    } | changes  # fmt: skip


@pytest.mark.parametrize("why", Why)
def test_every_cause_is_a_sentence(why: Why) -> None:
    text = cause_text({"why": why.value, "member": MEMBER, "waited_ms": 45_000, "other_id": "m-0"})
    assert why.value not in text or why.value in ("joined", "left", "removed", "fenced")
    assert len(text) > 10


def test_who_missed_its_heartbeat_by_how_much() -> None:
    cause = {"why": "session_expired", "member": MEMBER, "waited_ms": 45_000}
    assert cause_text(cause) == (
        "app-1 (10.0.0.7) missed its heartbeat: nothing was heard of it for 45.0 s"
    )
    late = {"why": "came_late", "member": {"id": "m-1"}, "waited_ms": 700}
    assert cause_text(late) == "m-1 sent a heartbeat 700 ms after it was taken for dead"


def test_details_and_reasons_are_told() -> None:
    cause = {"why": "topics_changed", "details": ["t: 4 to 6 partitions", "2 more"]}
    assert cause_text(cause) == "the topics changed: t: 4 to 6 partitions, 2 more"
    left = {"why": "left", "member": MEMBER, "reason": "the consumer is being closed"}
    assert cause_text(left).endswith('left ("the consumer is being closed")')


def test_what_a_newer_broker_says_is_shown_as_it_is() -> None:
    assert cause_text({"why": "moon_rose", "member": MEMBER}) == "app-1 (10.0.0.7): moon_rose"
    assert outcome_text(entry(end="paused")) == "epochs 4 to 6: paused after 1.2 s"


def test_causes_that_are_not_listed_are_counted_and_none_is_said() -> None:
    cause = {"why": "joined", "member": MEMBER}
    texts = causes_texts(entry(causes=[cause, cause], more_causes={"joined": 480}))
    assert texts[1] == "and 480 more: 480 joined"
    assert causes_texts(entry()) == ["the cause is not known: this coordinator began meanwhile"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "epochs 4 to 6: stable after 1.2 s, 3 members"),
        ({"type": "classic", "first_epoch": 6}, "generation 6: stable after 1.2 s, 3 members"),
        ({"end": None, "lasted_ms": None}, "epochs 4 to 6: not stable yet"),
        ({"end": "empty"}, "epochs 4 to 6: no member is left after 1.2 s"),
        ({"end": "none"}, "no rebalance"),
    ],
)
def test_what_came_of_it(changes: dict[str, Any], text: str) -> None:
    assert outcome_text(entry(**changes)) == text


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "6 partitions moved"),
        ({"moved": 0}, "nothing moved"),
        ({"moved": None}, "what moved is not known"),
        ({"end": "empty"}, ""),
        ({"end": "none"}, ""),
    ],
)
def test_how_much_moved(changes: dict[str, Any], text: str) -> None:
    assert moved_text(entry(**changes)) == text


def test_members_with_one_client_id_are_told_apart() -> None:
    other = MEMBER | {"id": "app-1-123456"}
    move = {"topic": "t", "partitions": "0-2", "from": None, "to": MEMBER}
    assert moves_texts(entry(moves=[move])) == ["t 0-2: nobody -> app-1 (10.0.0.7)"]
    assert moves_texts(entry(moves=[move, move | {"from": other}])) == [
        "t 0-2: nobody -> app-1 (10.0.0.7) ...abcdef",
        "t 0-2: app-1 (10.0.0.7) ...123456 -> app-1 (10.0.0.7) ...abcdef",
    ]
    assert member_name(MEMBER | {"instance_id": "i-1"}) == "app-1 (instance i-1, 10.0.0.7)"
