"""What a client notices that is connected already, when its user or an ACL is taken away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from ottla.testing import Broker, Security

WAIT_S = 20
SESSION_MS = 3_000


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Its parameter: connections.max.reauth.ms."""
    security = Security(users={"app": "secret"}, acls=["app Write topic t"])
    config = {"connections.max.reauth.ms": str(request.param)}
    with Broker(config=config, security=security) as running:
        running.create_topic("t")
        yield running


class Connected:
    """A producer that has sent a record."""

    def __init__(self, broker: Broker) -> None:
        self.failures: list[KafkaError] = []
        settings: Any = {"error_cb": self.failures.append, "log_level": 0}
        settings["message.timeout.ms"] = WAIT_S * 1000
        self.producer = Producer(broker.client("app") | settings)
        assert self.error() is None

    def error(self) -> int | None:
        """Why one more record is not delivered."""
        errors: list[Any] = []
        self.producer.produce("t", b"x", on_delivery=lambda error, _: errors.append(error))
        assert self.producer.flush(2 * WAIT_S) == 0
        return None if errors[0] is None else int(errors[0].code())


@pytest.mark.parametrize("broker", [0], indirect=True)
def test_an_acl_that_is_taken_away_counts_at_the_next_request(broker: Broker) -> None:
    app = Connected(broker)
    broker.delete_acls("app Write topic t")
    assert app.error() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    broker.add_acls("app Write topic t")
    Connected(broker)


@pytest.mark.parametrize("broker", [0], indirect=True)
def test_a_deleted_user_stays_connected_without_a_limit_of_sessions(broker: Broker) -> None:
    """As in Apache Kafka: only authentication looks at the password."""
    app = Connected(broker)
    broker.delete_user("app")
    assert app.error() is None
    assert app.failures == []


@pytest.mark.parametrize("broker", [SESSION_MS], indirect=True)
def test_a_deleted_user_stays_connected_until_its_session_ends(broker: Broker) -> None:
    app = Connected(broker)
    broker.delete_user("app")
    until = time.monotonic() + WAIT_S
    while not app.failures:
        assert time.monotonic() < until
        app.producer.poll(0.1)
    assert app.failures[0].code() == KafkaError._AUTHENTICATION
