"""At the end of a run the leaders' journeys are compared with what is known; untruths are found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from faults.history import Acknowledged, Event, Sent
from simulation.broker import FIRST_WALL_MS
from simulation.journeys import Span, spans_of, untrue, untrue_time
from simulation.world import run

from ottla.journey.explain import explain
from ottla.tracing import trace as tracing


def said(**replicated: Any) -> dict[str, Any]:
    return {
        "state": "stored",
        "offset": 4,
        "appended": {"leader_epoch": 2, "broker": 1},
        "replicated": {"committed": True, "elections": [], "copies": [], **replicated},
    }


ACCOUNT = SimpleNamespace(leaders={2: 1, 3: 2})
CLUSTER: Any = SimpleNamespace(invariants=SimpleNamespace(account=lambda topic, index: ACCOUNT))
PARTITION = SimpleNamespace(high_watermark=9, state=SimpleNamespace(isr=(1, 2)))


def judged(document: dict[str, Any]) -> str | None:
    return untrue(CLUSTER, "t", 0, PARTITION, document)


def test_what_is_said_of_leaders_and_replicas_is_compared() -> None:
    assert judged(said()) is None
    assert judged(said() | {"appended": {"leader_epoch": 2, "broker": 3}}) is not None
    assert judged(said() | {"state": "compacted"}) == "that it is compacted"
    assert judged(said(committed=False)) == "that it is not committed"
    assert judged(said(elections=[{"leader_epoch": 3, "leader": 2}])) is None
    assert judged(said(elections=[{"leader_epoch": 3, "leader": 1}])) is not None
    assert judged(said(copies=[{"broker": 3, "state": "not_yet"}])) is None
    assert judged(said(copies=[{"broker": 2, "state": "not_yet"}])) is not None


@pytest.mark.parametrize(
    ("since_ms", "until_ms", "is_true"),
    [(5, 9, True), (None, 5, True), (9, None, True), (None, 4, False), (10, None, False)],
)
def test_an_append_is_between_its_request_and_the_answer(
    since_ms: int | None, until_ms: int | None, is_true: bool
) -> None:
    since, until = (None if ms is None else FIRST_WALL_MS + ms for ms in (since_ms, until_ms))
    document = {"appended": {"when": {"since_ms": since, "until_ms": until}}}
    assert (untrue_time(document, Span(5, 9)) is None) is is_true


def test_what_clients_know_of_each_offset() -> None:
    events: list[Event] = [
        *(Sent(5, "a", 0), Sent(6, "b", 1), Sent(7, "c", 0), Sent(8, "a", 0)),
        *(Acknowledged(9, "a", 0, 3), Acknowledged(9, "b", 1, 4), Acknowledged(9, "c", 0, -1)),
        # An unclean election may bring "a" back.
        *(Sent(10, "d", 0), Acknowledged(11, "d", 0, 3)),
    ]
    assert spans_of(events, 0) == {(3, "a"): Span(5, 9), (3, "d"): Span(10, 11)}


@pytest.mark.parametrize(
    ("part", "what"), [("broker", "appended it, not"), ("when", "it was acknowledged at")]
)
def test_a_planted_untruth_is_found(monkeypatch: pytest.MonkeyPatch, part: str, what: str) -> None:
    late = {"since_ms": 2**50, "until_ms": None, "exact": False}

    def untruly(facts: Any) -> dict[str, Any]:
        document = explain(facts)
        document["appended"] |= {"broker": 99} if part == "broker" else {"when": late}
        return document

    monkeypatch.setattr(tracing, "explain", untruly)
    assert what in str(run(1).violation)
