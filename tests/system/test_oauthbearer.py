"""OAUTHBEARER with a stock client: a broker, and an issuer of tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from tests.security.issuer import AUDIENCE, ISSUER, Issuer, KeyServer, encoded, serving

from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports

WAIT_S = 30
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


class Tokens:
    """A broker that takes tokens, and what its clients need to know."""

    def __init__(
        self, new_broker: Callable[..., BrokerProcess], keys_url: str | None, **more: str
    ) -> None:
        self.plain_port, self.port = free_ports(2)
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{self.plain_port},SASL_PLAINTEXT://{HOST}:{self.port}",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.clock.skew.seconds": "0",
            "connection.failed.authentication.delay.ms": "10",
        } | more
        if keys_url is not None:
            settings["sasl.oauthbearer.jwks.endpoint.url"] = keys_url
        words = [word for pair in settings.items() for word in ("-c", "=".join(pair))]
        self.broker = new_broker(*words)

    def client(self, new_token: Callable[[], str], lasts_s: float = 600) -> dict[str, Any]:
        """The settings of a client with these tokens."""
        return {
            "bootstrap.servers": f"{HOST}:{self.port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (new_token(), time.time() + lasts_s, "alice", {"traceId": "7"}),
        }


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def keys(issuer: Issuer) -> Iterator[KeyServer]:
    with serving(issuer.key_set()) as server:
        yield server


@pytest.fixture
def tokens(new_broker: Callable[..., BrokerProcess], keys: KeyServer) -> Tokens:
    return Tokens(new_broker, keys.url)


def produced(settings: dict[str, Any], values: list[bytes]) -> None:
    producer = confluent_kafka.Producer(settings)
    producer.poll(0)
    for value in values:
        producer.produce("t", value)
    assert producer.flush(WAIT_S) == 0


def consumed(settings: dict[str, Any], count: int) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        settings | {"group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    values: list[bytes] = []
    while len(values) < count:
        for message in consumer.consume(count, WAIT_S):
            assert message.error() is None
            values.append(message.value())
    consumer.close()
    return values


def first_error(settings: dict[str, Any]) -> str:
    """What librdkafka says of its first refused connection."""
    errors: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer(settings | {"error_cb": errors.append})
    until = time.monotonic() + WAIT_S
    while not errors and time.monotonic() < until:
        producer.poll(0.1)
    return str(errors[0])


def test_whole(tokens: Tokens, issuer: Issuer) -> None:
    settings = tokens.client(lambda: issuer.token("alice"))
    values = [str(number).encode() for number in range(100)]
    produced(settings, values)
    assert consumed(settings, len(values)) == values
    assert "refused" not in tokens.broker.said()


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"lasts_s": -1}, "it expired 1 s ago"),
        ({"aud": "elsewhere"}, "its audience is 'elsewhere', not kafka"),
        ({"iss": "https://evil.example"}, "its issuer is 'https://evil.example'"),
        ({"sub": None}, "its claim sub, the client's name, is missing"),
    ],
)
def test_tokens_that_are_refused(
    tokens: Tokens, issuer: Issuer, claims: dict[str, Any], said: str
) -> None:
    if "lasts_s" in claims:
        claims = claims | {"iat": time.time() - 100}
    error = first_error(tokens.client(lambda: issuer.token("alice", **claims)))
    assert "_AUTHENTICATION" in error
    assert '{"status":"invalid_token"}' in error
    assert f"token refused: {said}" in tokens.broker.said()


def test_a_token_of_another_issuer_and_one_that_nobody_signed(
    tokens: Tokens, issuer: Issuer
) -> None:
    other = Issuer()
    assert "invalid_token" in first_error(tokens.client(lambda: other.token("alice")))
    assert "its signature is wrong" in tokens.broker.said()
    claims = issuer.token("alice").split(".")[1]
    nobodys = f"{encoded({'alg': 'none'})}.{claims}."
    assert "invalid_token" in first_error(tokens.client(lambda: nobodys))
    assert "its algorithm is 'none'" in tokens.broker.said()


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (100_000, "token refused: it has about"),
        # More than a client may send before it has authenticated.
        (1 << 20, ""),
    ],
)
def test_large_tokens(tokens: Tokens, issuer: Issuer, size: int, said: str) -> None:
    # librdkafka looks at no more of a token than its characters.
    large = issuer.token("alice", more="a" * size)
    first_error(tokens.client(lambda: large))
    assert said in tokens.broker.said()
    produced(tokens.client(lambda: issuer.token("alice")), [b"a"])


def test_a_token_expires_while_connected(tokens: Tokens, issuer: Issuer) -> None:
    """The client authenticates again with another one: nothing is lost or doubled. librdkafka looks
    every second whether it needs another one, from four fifths of its time on.
    """
    made: list[str] = []

    def new_token() -> str:
        made.append(issuer.token("alice", 6))
        return made[-1]

    producer = confluent_kafka.Producer(tokens.client(new_token, 6))
    began = time.monotonic()
    sent = 0
    while len(made) < 2 or time.monotonic() < began + 7:
        assert time.monotonic() < began + WAIT_S
        producer.poll(0)
        producer.produce("t", str(sent).encode())
        assert producer.flush(WAIT_S) == 0
        sent += 1
        time.sleep(0.05)
    plain = {"bootstrap.servers": f"{HOST}:{tokens.plain_port}"}
    assert consumed(plain, sent) == [str(number).encode() for number in range(sent)]
    assert "refused" not in tokens.broker.said()


def test_a_client_without_another_token_is_disconnected(tokens: Tokens, issuer: Issuer) -> None:
    """Its token ends while a fetch waits."""
    ended = time.time() + 3
    only = issuer.token("alice", 3)
    settings = tokens.client(lambda: only, 600)
    produced(settings, [b"a"])
    errors: list[confluent_kafka.KafkaError] = []
    consumer = confluent_kafka.Consumer(
        settings | {"group.id": "g", "error_cb": errors.append, "fetch.wait.max.ms": 500}
    )
    consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    until = time.monotonic() + WAIT_S
    while not any("invalid_token" in str(each) for each in errors):
        assert time.monotonic() < until
        consumer.poll(0.1)
    assert time.time() >= ended
    assert "token refused: it expired" in tokens.broker.said()


def test_a_new_key(tokens: Tokens, issuer: Issuer, keys: KeyServer) -> None:
    produced(tokens.client(lambda: issuer.token("alice")), [b"a"])
    assert keys.asked == 1
    old = issuer.token("alice")
    issuer.new_key()
    keys.text = issuer.key_set()
    produced(tokens.client(lambda: issuer.token("alice")), [b"b"])
    produced(tokens.client(lambda: old), [b"c"])
    assert keys.asked == 2
    assert "refused" not in tokens.broker.said()


def test_an_issuer_that_is_down(new_broker: Callable[..., BrokerProcess], issuer: Issuer) -> None:
    """At the start all are refused; later those whose keys are known are not."""
    (port,) = free_ports(1)
    more = {"sasl.oauthbearer.jwks.endpoint.refresh.ms": "1000"}
    tokens = Tokens(new_broker, f"http://{HOST}:{port}/keys", **more)
    settings = tokens.client(lambda: issuer.token("alice"))
    assert "_AUTHENTICATION" in first_error(settings)
    said = tokens.broker.said()
    assert f"cannot read the keys of tokens from http://{HOST}:{port}/keys: Connection" in said
    assert "until then all tokens are refused" in said
    with serving(issuer.key_set(), port):
        produced(settings, [b"a"])
    until = time.monotonic() + WAIT_S
    while tokens.broker.said().count("Connection refused") < 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    produced(settings, [b"b"])
    assert consumed(settings, 2) == [b"a", b"b"]


def test_unsecured_tokens(new_broker: Callable[..., BrokerProcess]) -> None:
    """librdkafka makes them itself (KIP-255)."""
    line = f'{MODULE} unsecuredValidatorRequiredScope="r";'
    name = "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"
    tokens = Tokens(new_broker, None, **{name: line})
    assert "takes tokens that nobody signed" in tokens.broker.said()
    settings: dict[str, Any] = {
        "bootstrap.servers": f"{HOST}:{tokens.port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
    }
    given = {"sasl.oauthbearer.config": "principal=alice scope=r,w"}
    cluster = AdminClient(settings | given).list_topics(timeout=WAIT_S)
    assert len(cluster.brokers) == 1
    error = first_error(settings | {"sasl.oauthbearer.config": "principal=alice scope=w"})
    assert '{"status":"insufficient_scope","scope":"r"}' in error
