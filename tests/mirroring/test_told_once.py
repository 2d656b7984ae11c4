"""Events that come again are told once, within a limit."""

from __future__ import annotations

import pytest

from ottla.mirroring import told_once
from ottla.mirroring.events import GROUP, REFUSED, Event
from ottla.mirroring.told_once import ToldOnce


def test_an_event_is_told_once_until_all_are_forgotten() -> None:
    told: list[Event] = []
    tell = ToldOnce(told.append)
    one, other = Event(REFUSED, "no", {"topic": "a"}), Event(REFUSED, "no", {"topic": "b"})
    for each in (one, other, one, Event(GROUP, "no", {"group": "a"}), other):
        tell(each)
    assert told == [one, other, Event(GROUP, "no", {"group": "a"})]
    tell.forget()
    tell(one)
    assert told[3:] == [one]


def test_the_oldest_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_once, "MAX_KEPT", 2)
    told: list[str] = []
    tell = ToldOnce(lambda event: told.append(event.text))
    for text in ("a", "b", "c", "c", "a"):
        tell(Event(GROUP, text))
    assert told == ["a", "b", "c", "a"]
