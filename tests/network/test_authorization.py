import logging

import pytest

from ottla.network.authorization import LOG_AGAIN_MS, MAX_SHOWN_CHARACTERS, Authorization
from ottla.network.client_session import ClientSession
from ottla.protocol.access import Operation, Resource
from ottla.security.authorizer import Authorizer

WRITE, TOPIC = Operation.WRITE, Resource.TOPIC


def test_a_denial_is_logged_once_a_minute_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    now_ms = 0
    authorization = Authorization(Authorizer(), lambda: now_ms)
    session = ClientSession(1, "10.1.2.3", "SSL", "localhost", 9092)
    for _ in range(2):
        assert not authorization.allows(session, WRITE, TOPIC, "orders")
    assert not authorization.allows(session, WRITE, TOPIC, "asked by a filter", log=False)
    assert caplog.messages == [
        "User:ANONYMOUS lacks Write on Topic 'orders': denied, from 10.1.2.3 on listener SSL"
    ]
    now_ms = LOG_AGAIN_MS
    assert not authorization.allows(session, WRITE, TOPIC, "orders")
    assert len(caplog.messages) == 2
    assert authorization.denied == {(WRITE, TOPIC): 3}


def test_a_long_name_makes_no_long_line(caplog: pytest.LogCaptureFixture) -> None:
    authorization = Authorization(Authorizer(), lambda: 0)
    session = ClientSession(1, "10.1.2.3", "SSL", "localhost", 9092)
    for end in "ab":
        name = f"{'x' * MAX_SHOWN_CHARACTERS}{end}"
        assert not authorization.allows(session, WRITE, TOPIC, name)
    (line,) = caplog.messages
    assert f"{'x' * MAX_SHOWN_CHARACTERS}'" in line
