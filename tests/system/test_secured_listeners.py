"""Stock clients at a broker with several listeners, one of them with TLS."""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tests.security.authority import Authority
from tests.system.test_cli import Typed

from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports

WAIT_S = 30
USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_alice="alice-secret" user_bob="bobs";'
)


class Secured:
    """The broker, and what its clients need to know."""

    def __init__(self, new_broker: Callable[..., BrokerProcess], folder: Path, **more: str) -> None:
        self.authority = Authority()
        self.trust = self.authority.trust(folder / "trust.pem")
        store = self.authority.issue("CN=broker").store(folder / "broker.pem")
        ports = free_ports(5)
        self.plain_port, self.tls_port, self.certified_port = ports[:3]
        self.sasl_port, self.sasl_tls_port = ports[3:]
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{self.plain_port},SSL://{HOST}:{self.tls_port},"
            f"CERTIFIED://{HOST}:{self.certified_port},SASL_PLAINTEXT://{HOST}:{self.sasl_port},"
            f"SASL_SSL://{HOST}:{self.sasl_tls_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CERTIFIED:SSL,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.plain_port},"
            f"SSL://localhost:{self.tls_port},CERTIFIED://localhost:{self.certified_port},"
            f"SASL_PLAINTEXT://{HOST}:{self.sasl_port},SASL_SSL://localhost:{self.sasl_tls_port}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
            "listener.name.certified.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "ottla.first.users": "SCRAM-SHA-256=[name=admin,password=first]",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
            "listener.name.sasl_ssl.plain.sasl.jaas.config": USERS,
            "listener.name.sasl_plaintext.connections.max.reauth.ms": "3000",
            **more,
        }
        words = [word for pair in settings.items() for word in ("-c", "=".join(pair))]
        self.broker = new_broker(*words)

    def librdkafka(self, port: int, **more: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": f"localhost:{port}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.trust),
        } | {name.replace("_", "."): value for name, value in more.items()}

    def with_password(self, port: int, password: str = "alice-secret") -> dict[str, Any]:
        """Alice's settings."""
        is_encrypted = port == self.sasl_tls_port
        settings = self.librdkafka(
            port, sasl_mechanism="PLAIN", sasl_username="alice", sasl_password=password
        )
        if not is_encrypted:
            del settings["ssl.ca.location"]
        return settings | {
            "security.protocol": "SASL_SSL" if is_encrypted else "SASL_PLAINTEXT",
            "bootstrap.servers": f"{'localhost' if is_encrypted else HOST}:{port}",
        }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """For the tests that do not look at its log: with fresh names of topics."""
    folder = tmp_path_factory.mktemp("secured")
    made = Secured(lambda *words: BrokerProcess(folder / "data", list(words)).start(), folder)
    yield made
    assert made.broker.stop() == 0, made.broker.said()


@pytest.fixture
def own(new_broker: Callable[..., BrokerProcess], tmp_path: Path) -> Secured:
    """For a test that looks at its log: what a client repeats is logged once."""
    return Secured(new_broker, tmp_path)


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


def produced(settings: dict[str, Any], topic: str, values: list[bytes]) -> None:
    producer = confluent_kafka.Producer(settings)
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(WAIT_S) == 0


def consumed(settings: dict[str, Any], topic: str, count: int) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        settings | {"group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    while len(values) < count:
        for message in consumer.consume(count, WAIT_S):
            assert message.error() is None
            values.append(message.value())
    consumer.close()
    return values


def test_librdkafka_over_tls(secured: Secured, topic: str) -> None:
    settings = secured.librdkafka(secured.tls_port)
    values = [b"small"] * 100 + [bytes(900_000)] * 20
    produced(settings, topic, values)
    assert consumed(settings, topic, len(values)) == values


def test_librdkafka_with_a_certificate(secured: Secured, topic: str, tmp_path: Path) -> None:
    shown = secured.authority.issue("CN=alice").store(tmp_path / "alice.pem")
    settings = secured.librdkafka(
        secured.certified_port, ssl_certificate_location=str(shown), ssl_key_location=str(shown)
    )
    produced(settings, topic, [b"a"])
    assert consumed(settings, topic, 1) == [b"a"]


def test_kafka_python_over_tls(secured: Secured, topic: str) -> None:
    settings = {
        "bootstrap_servers": f"localhost:{secured.tls_port}",
        "security_protocol": "SSL",
        "ssl_cafile": str(secured.trust),
    }
    producer = kafka.KafkaProducer(**settings)
    producer.send(topic, b"a").get(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_S * 1000, **settings
    )
    assert next(consumer).value == b"a"
    consumer.close()


def test_each_listener_answers_with_its_own_address(secured: Secured) -> None:
    ports = {secured.tls_port: "localhost", secured.plain_port: HOST}
    for port, host in ports.items():
        settings = secured.librdkafka(port)
        if port == secured.plain_port:
            settings = {"bootstrap.servers": f"{HOST}:{port}"}
        admin = AdminClient(settings)
        (broker,) = admin.list_topics(timeout=WAIT_S).brokers.values()
        assert (broker.host, broker.port) == (host, port)
        cluster = admin.describe_cluster(request_timeout=WAIT_S).result()
        assert [(node.host, node.port) for node in cluster.nodes] == [(host, port)]


def refused(*settings: dict[str, Any]) -> None:
    """Clients that try again and again for three seconds, side by side."""

    def is_refused(client: AdminClient) -> None:
        with pytest.raises(confluent_kafka.KafkaException):
            client.list_topics(timeout=3)

    with ThreadPoolExecutor(len(settings)) as threads:
        list(threads.map(is_refused, map(AdminClient, settings)))


def test_a_client_that_does_not_speak_tls_is_told_so_by_the_log(own: Secured) -> None:
    refused(
        {"bootstrap.servers": f"{HOST}:{own.tls_port}"},
        own.librdkafka(own.certified_port),
        own.librdkafka(own.plain_port),
    )
    said = own.broker.said()
    assert said.count("on listener SSL: it does not speak TLS") == 1
    assert said.count("on listener CERTIFIED: it has shown no certificate") == 1
    assert "it speaks TLS, and listener PLAINTEXT does not" in said


def test_wrong_certificates_are_one_line(tmp_path: Path) -> None:
    options = ["-c", "listeners=SSL://127.0.0.1:0", "-c", "ssl.keystore.type=PEM"]
    broker = BrokerProcess(
        tmp_path / "data", [*options, "-c", f"ssl.keystore.location={tmp_path}/none.pem"]
    )
    broker.launch()
    assert broker.process is not None
    assert broker.process.wait(WAIT_S) == 2
    assert f"listener SSL: ssl.keystore.location {tmp_path}/none.pem: No such file" in broker.said()


def test_librdkafka_with_a_password(secured: Secured, topic: str) -> None:
    for port in (secured.sasl_port, secured.sasl_tls_port):
        settings = secured.with_password(port)
        produced(settings, topic, [b"a"] * 10)
    assert consumed(settings, topic, 20) == [b"a"] * 20


def test_librdkafka_authenticates_again(own: Secured) -> None:
    """Its session ends after 3 seconds; it goes on without a lost or doubled record."""
    producer = confluent_kafka.Producer(own.with_password(own.sasl_port))
    until = time.monotonic() + 5
    sent = 0
    while time.monotonic() < until:
        producer.produce("t", str(sent).encode())
        assert producer.flush(WAIT_S) == 0
        sent += 1
        time.sleep(0.05)
    plain = {"bootstrap.servers": f"{HOST}:{own.plain_port}"}
    assert consumed(plain, "t", sent) == [str(number).encode() for number in range(sent)]
    assert "refused" not in own.broker.said()
    assert "closed the connection" not in own.broker.said()


def first_error(settings: dict[str, Any]) -> str:
    """What librdkafka says of its first refused connection."""
    errors: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer(settings | {"error_cb": errors.append})
    until = time.monotonic() + WAIT_S
    while not errors and time.monotonic() < until:
        producer.poll(0.1)
    return str(errors[0])


def test_a_wrong_password(own: Secured) -> None:
    said = first_error(own.with_password(own.sasl_port, "wrong"))
    assert "_AUTHENTICATION" in said
    assert "invalid credentials with SASL mechanism PLAIN" in said
    assert own.broker.said().count("wrong user name or password (user 'alice')") == 1


def test_a_mechanism_that_is_not_offered(secured: Secured) -> None:
    settings = secured.with_password(secured.sasl_port) | {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.config": "principal=alice",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
    }
    said = first_error(settings)
    assert "supported mechanisms: PLAIN,SCRAM-SHA-256,SCRAM-SHA-512" in said


def test_kafka_python_with_a_password(secured: Secured, topic: str) -> None:
    settings = {
        "bootstrap_servers": f"localhost:{secured.sasl_tls_port}",
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(secured.trust),
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
    }
    producer = kafka.KafkaProducer(sasl_plain_password="alice-secret", **settings)
    producer.send(topic, b"a").get(WAIT_S)
    producer.close()
    with pytest.raises(kafka.errors.KafkaError):
        kafka.KafkaProducer(sasl_plain_password="wrong", bootstrap_timeout_ms=1000, **settings)


def test_the_command_line_with_a_password(secured: Secured) -> None:
    typed = Typed(f"{HOST}:{secured.sasl_port}")

    def run(password: str, code: int) -> str:
        settings = secured.with_password(secured.sasl_port, password)
        del settings["bootstrap.servers"]
        options = [
            word for pair in settings.items() for word in ("--client-config", "=".join(pair))
        ]
        done = typed.run("cluster", "describe", *options, code=code)
        return (done.stdout + done.stderr).decode()

    assert "1 broker" in run("alice-secret", 0)
    assert "invalid credentials with SASL mechanism PLAIN" in run("wrong", 1)


def test_clients_that_do_not_authenticate(own: Secured) -> None:
    refused({"bootstrap.servers": f"{HOST}:{own.sasl_port}"}, own.librdkafka(own.sasl_tls_port))
    said = own.broker.said()
    assert "on listener SASL_PLAINTEXT: unexpected metadata request during SASL handshake" in said
    assert "on listener SASL_SSL: unexpected metadata request during SASL handshake" in said


def test_a_large_frame_before_authentication(secured: Secured) -> None:
    with socket.create_connection((HOST, secured.sasl_port)) as client:
        client.settimeout(WAIT_S)
        client.sendall((524_289).to_bytes(4, "big") + b"\0\x12\0\0")
        assert client.recv(1) == b""


def test_users_of_scram(secured: Secured, topic: str) -> None:
    """The first user makes another one, which works at once, until it is gone."""
    settings = secured.with_password(secured.sasl_tls_port) | {
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "admin",
        "sasl.password": "first",
    }
    admin = AdminClient(settings)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    name = "M\u00fcller, 1/2"
    upsertion = UserScramCredentialUpsertion(name, info, b"secret")
    for future in admin.alter_user_scram_credentials([upsertion]).values():
        future.result(WAIT_S)
    described = admin.describe_user_scram_credentials().result(WAIT_S)
    assert set(described) == {"admin", name}
    (credential,) = described[name].scram_credential_infos
    assert (credential.mechanism, credential.iterations) == (ScramMechanism.SCRAM_SHA_512, 8192)
    new = settings | {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": name,
        "sasl.password": "secret",
    }
    produced(new, topic, [b"a"])
    assert consumed(new, topic, 1) == [b"a"]
    assert "_AUTHENTICATION" in first_error(new | {"sasl.password": "wrong"})
    deletion = UserScramCredentialDeletion(name, ScramMechanism.SCRAM_SHA_512)
    for future in admin.alter_user_scram_credentials([deletion]).values():
        future.result(WAIT_S)
    assert "_AUTHENTICATION" in first_error(new)


def test_kafka_python_with_scram(secured: Secured, topic: str) -> None:
    settings = {
        "bootstrap_servers": f"{HOST}:{secured.sasl_port}",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "admin",
        "sasl_plain_password": "first",
    }
    producer = kafka.KafkaProducer(**settings)
    producer.send(topic, b"a").get(WAIT_S)
    producer.close()
