"""Cookies, tokens and their end."""

from __future__ import annotations

from ottla.console import sessions
from ottla.console.access import Access
from ottla.console.sessions import IDLE_S, MAX_MESSAGES, Sessions

ACCESS = Access("localhost:1", {}, "tests")


def test_a_session_is_found_by_its_name_until_it_was_idle_for_long() -> None:
    now_s = 5.0
    known = Sessions(lambda: now_s)
    session = known.begin(ACCESS)
    assert known.find(session.name) is session
    assert known.find("other") is None
    assert known.find(None) is None
    now_s += IDLE_S
    assert known.find(session.name) is session
    now_s += IDLE_S + 1
    assert known.find(session.name) is None


def test_a_token_is_of_one_session() -> None:
    known = Sessions()
    one, other = known.begin(ACCESS), known.begin(ACCESS)
    assert one.owns(one.token)
    assert not one.owns(other.token)
    assert not one.owns("")
    assert not one.owns("é")


def test_there_is_a_limit_and_the_least_used_ends() -> None:
    known = Sessions()
    first, second = known.begin(ACCESS), known.begin(ACCESS)
    known.find(first.name)
    for _ in range(sessions.MAX_SESSIONS - 1):
        known.begin(ACCESS)
    assert known.find(first.name) is first
    assert known.find(second.name) is None


def test_messages_are_bounded() -> None:
    session = Sessions().begin(ACCESS)
    for number in range(MAX_MESSAGES + 3):
        session.say(str(number))
    assert session.messages == [str(number) for number in range(3, MAX_MESSAGES + 3)]
