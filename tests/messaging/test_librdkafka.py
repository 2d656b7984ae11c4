"""librdkafka's errors as sentences."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from ottla.messaging.librdkafka import explain, failure, quiet


class FakeError:
    """librdkafka's error, as far as its text goes."""

    def __init__(self, text: str, code: int = 0) -> None:
        self.text = text
        self._code = code

    def code(self) -> int:
        return self._code

    def str(self) -> str:
        return self.text


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Broker: Unknown member", "Unknown member."),
        ("Local: Timed out", "Timed out."),
        ("It ends.", "It ends."),
        ("No such name; did you mean that?", "No such name; did you mean that?"),
    ],
)
def test_prefixes_are_removed(said: str, told: str) -> None:
    assert explain(FakeError(said)) == told


def test_a_broken_connection_is_not_reported_as_a_timeout() -> None:
    broken = KafkaException(FakeError("Disconnected", KafkaError._TRANSPORT))
    assert str(failure(broken, "drop x")) == (
        "cannot drop x: the connection closed before the response arrived."
    )
    slow = KafkaException(FakeError("Timed out", KafkaError._TIMED_OUT))
    assert str(failure(slow, "drop x")) == "cannot drop x: no response in time."


def test_a_users_setting_counts() -> None:
    assert quiet({"log_level": 7, "client.id": "me"})["log_level"] == 7
