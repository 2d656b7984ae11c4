import logging

import pytest

from ottla.network.refusals import (
    MAX_REASON_CHARACTERS,
    MAX_REMEMBERED,
    SAY_AGAIN_MS,
    Refusals,
)


def test_each_address_and_reason_is_said_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    now_ms = 0
    refusals = Refusals(logging.getLogger("test"), "SSL", lambda: now_ms)
    for host, reason in (("a", "x"), ("a", "x"), ("a", "y"), ("b", "x")):
        refusals.say(host, reason)
    assert caplog.messages == [
        "refused a on listener SSL: x",
        "refused a on listener SSL: y",
        "refused b on listener SSL: x",
    ]
    now_ms = SAY_AGAIN_MS
    refusals.say("a", "x")
    assert len(caplog.messages) == 4
    assert refusals.count == 5


def test_only_so_many_are_remembered(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals(logging.getLogger("test"), "SSL", lambda: 0)
    for number in range(MAX_REMEMBERED + 1):
        refusals.say(str(number), "x")
    refusals.say("0", "x")
    assert len(caplog.messages) == MAX_REMEMBERED + 2


def test_what_a_client_sends_makes_no_long_line(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals(logging.getLogger("test"), "SSL", lambda: 0)
    for end in "ab":
        refusals.say("a", "x" * MAX_REASON_CHARACTERS + end)
    assert caplog.messages == [f"refused a on listener SSL: {'x' * MAX_REASON_CHARACTERS}"]
