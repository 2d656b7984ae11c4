"""A message in share groups: the part of the document, and its lines."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.journey.outcome import Outcome, outcome_of
from ottla.journey.shared import MAX_EVENTS, SharedFacts, explain_shared
from ottla.journey.words.clock import Clock
from ottla.journey.words.line import line
from ottla.journey.words.shared import EVENTS, STATES, grow_shared
from ottla.share.note import Note, What
from ottla.share.record_state import RecordState

BEGIN_MS = 1_700_000_000_000


def note(at_ms: int, what: What, who: str = "m1", count: int = 1) -> tuple[int, Note]:
    return BEGIN_MS + at_ms, Note(what, 3, 7, who, count)


def told(facts: SharedFacts, offset: int = 5) -> dict[str, Any]:
    (found,) = explain_shared([facts], offset)
    return found


def lines(entry: dict[str, Any]) -> list[str]:
    top = line("")
    grow_shared(top, entry, Clock({"published": {"timestamp_ms": BEGIN_MS}}))
    (said,) = top.below
    return [said.text(), *(each.text() for each in said.below)]


def test_a_record_that_a_member_has() -> None:
    notes = [note(0, What.ACQUIRED, "m0"), note(10, What.RELEASED, "m0"),
             note(20, What.ACQUIRED, count=2)]  # fmt: skip
    until_ms = BEGIN_MS + 30_020
    facts = SharedFacts("g", 3, 8, RecordState.ACQUIRED, 2, "m1", until_ms, notes)
    found = told(facts)
    assert (found["state"], found["member"], found["delivery_count"]) == ("acquired", "m1", 2)
    assert (found["since_ms"], found["lock_until_ms"]) == (BEGIN_MS + 20, until_ms)
    assert [each["what"] for each in found["events"]] == ["acquired", "released", "acquired"]
    assert lines(found) == [
        "g  acquired by m1 since 22:13:20.020, until 22:13:50.020  (delivery 2)",
        "22:13:20.000  acquired  by m0  (delivery 1)",
        "22:13:20.010  released  by m0",
        "22:13:20.020  acquired  by m1  (delivery 2)",
    ]


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (SharedFacts("g", 3, 5), "not_yet"),
        (SharedFacts("g", -1, -1), "not_yet"),
        (SharedFacts("g", 3, 8, RecordState.AVAILABLE, 1), "available"),
        (SharedFacts("g", 3, 8, RecordState.AVAILABLE, 0), "not_yet"),
        (SharedFacts("g", 3, 8, RecordState.ACKNOWLEDGED, 1), "accepted"),
        (SharedFacts("g", 3, 8, RecordState.ARCHIVING, 1), "archiving"),
        (SharedFacts("g", 3, 8, RecordState.ARCHIVED, 1), "done"),
        (SharedFacts("g", 9, 9), "done"),
        (SharedFacts("g", 9, 9, notes=[note(0, What.ACCEPTED)]), "accepted"),
        (SharedFacts("g", 9, 9, notes=[note(0, What.REJECTED)]), "rejected"),
        (SharedFacts("g", 9, 9, notes=[note(0, What.TOO_OFTEN)]), "too_often"),
        (SharedFacts("g", 9, 9, notes=[note(0, What.MISSING)]), "missing"),
        (SharedFacts("g", None), "unknown"),
    ],
)
def test_states(facts: SharedFacts, state: str) -> None:
    found = told(facts)
    assert found["state"] == state
    assert (found["member"], found["since_ms"], found["dead_letter"]) == (None, None, None)
    assert lines(found)[0].startswith(f"g{STATES[state][0]}")
    waits = {"not_yet", "available", "archiving", "unknown"}
    document = {"state": "stored", "read": [], "shared": [found]}
    assert (outcome_of(document, None) is Outcome.WAITING) is (state in waits)


def test_a_dead_letter() -> None:
    notes = [note(0, What.REJECTED), note(5, What.LETTER_WRITTEN, "dlq.x")]
    found = told(SharedFacts("g", 9, 9, notes=notes))
    assert found["dead_letter"] == {"topic": "dlq.x", "written": True}
    assert found["events"][-1]["member"] is None
    assert "its dead letter is in dlq.x" in lines(found)
    notes[-1] = note(5, What.LETTER_GIVEN_UP, "dlq.x")
    found = told(SharedFacts("g", 9, 9, notes=notes))
    assert found["dead_letter"] == {"topic": "dlq.x", "written": False}
    assert not any("dlq.x" in each for each in lines(found))


def test_many_events_and_what_is_forgotten() -> None:
    notes = [note(at, What.RENEWED) for at in range(MAX_EVENTS + 5)]
    found = told(SharedFacts("g", 9, 9, notes=notes, forgotten_before_ms=BEGIN_MS))
    assert [each["at_ms"] - BEGIN_MS for each in found["events"]] == list(range(5, MAX_EVENTS + 5))
    assert lines(found)[1] == "what happened before 22:13:20.000 is not kept any more"


def test_every_event_has_words() -> None:
    assert set(EVENTS) == {each.value for each in What}
