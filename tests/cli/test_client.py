"""Addresses, settings, and errors as sentences."""

import socket

import pytest
from confluent_kafka import KafkaError, KafkaException

from ottla.cli.client import client_settings, connect, explain, pairs
from ottla.cli.failures import Failed, UsageFailed


class FakeError:
    """librdkafka's error, as far as its text goes."""

    def __init__(self, text: str, code: int = 0) -> None:
        self.text = text
        self._code = code

    def code(self) -> int:
        return self._code

    def str(self) -> str:
        return self.text


def test_unknown_client_setting_is_wrong_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        bootstrap = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(UsageFailed, match='No such configuration property: "foo"'):
            connect(bootstrap, ["foo=bar"])


def test_a_listener_that_does_not_respond_is_not_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        bootstrap = f"127.0.0.1:{server.getsockname()[1]}"
        connection = connect(bootstrap, answer_timeout_s=0.2)
        with pytest.raises(Failed, match="does not respond like a Kafka broker"):
            connection.topics()


def test_pairs_of_name_and_value() -> None:
    assert pairs("--config", ["a=1", " b = x=y "]) == {"a": "1", "b": "x=y"}
    assert pairs("--config", None) == {}


def test_client_settings_can_be_overridden() -> None:
    assert client_settings("h:1", ["client.id=me"])["client.id"] == "me"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Broker: Unknown member", "Unknown member."),
        ("Local: Timed out", "Timed out."),
        ("It ends.", "It ends."),
        ("No such name; did you mean that?", "No such name; did you mean that?"),
    ],
)
def test_librdkafka_prefixes_are_removed(said: str, told: str) -> None:
    assert explain(FakeError(said)) == told


def test_a_broken_connection_is_not_reported_as_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = connect(f"127.0.0.1:{server.getsockname()[1]}")
    broken = KafkaException(FakeError("Disconnected", KafkaError._TRANSPORT))
    assert str(connection.failure(broken, "drop x")) == (
        "cannot drop x: the connection closed before the response arrived."
    )
    slow = KafkaException(FakeError("Timed out", KafkaError._TIMED_OUT))
    assert str(connection.failure(slow, "drop x")) == "cannot drop x: no response within 10 s."
