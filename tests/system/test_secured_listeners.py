"""Stock clients at a broker with several listeners, one of them with TLS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import AdminClient
from tests.security.authority import Authority

from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports

WAIT_S = 30


class Secured:
    """The broker, and what its clients need to know."""

    def __init__(self, new_broker: Callable[..., BrokerProcess], folder: Path) -> None:
        self.authority = Authority()
        self.trust = self.authority.trust(folder / "trust.pem")
        store = self.authority.issue("CN=broker").store(folder / "broker.pem")
        self.plain_port, self.tls_port, self.certified_port = free_ports(3)
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{self.plain_port},SSL://{HOST}:{self.tls_port},"
            f"CERTIFIED://{HOST}:{self.certified_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CERTIFIED:SSL",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.plain_port},"
            f"SSL://localhost:{self.tls_port},CERTIFIED://localhost:{self.certified_port}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
            "listener.name.certified.ssl.client.auth": "required",
        }
        words = [word for pair in settings.items() for word in ("-c", "=".join(pair))]
        self.broker = new_broker(*words)

    def librdkafka(self, port: int, **more: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": f"localhost:{port}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.trust),
        } | {name.replace("_", "."): value for name, value in more.items()}


@pytest.fixture
def secured(new_broker: Callable[..., BrokerProcess], tmp_path: Path) -> Secured:
    return Secured(new_broker, tmp_path)


def produced(settings: dict[str, Any], values: list[bytes]) -> None:
    producer = confluent_kafka.Producer(settings)
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


def test_librdkafka_over_tls(secured: Secured) -> None:
    settings = secured.librdkafka(secured.tls_port)
    values = [b"small"] * 100 + [bytes(900_000)] * 20
    produced(settings, values)
    assert consumed(settings, len(values)) == values


def test_librdkafka_with_a_certificate(secured: Secured, tmp_path: Path) -> None:
    shown = secured.authority.issue("CN=alice").store(tmp_path / "alice.pem")
    settings = secured.librdkafka(
        secured.certified_port, ssl_certificate_location=str(shown), ssl_key_location=str(shown)
    )
    produced(settings, [b"a"])
    assert consumed(settings, 1) == [b"a"]


def test_kafka_python_over_tls(secured: Secured) -> None:
    settings = {
        "bootstrap_servers": f"localhost:{secured.tls_port}",
        "security_protocol": "SSL",
        "ssl_cafile": str(secured.trust),
    }
    producer = kafka.KafkaProducer(**settings)
    producer.send("t", b"a").get(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        "t", auto_offset_reset="earliest", consumer_timeout_ms=WAIT_S * 1000, **settings
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


def test_a_client_that_does_not_speak_tls_is_told_so_by_the_log(secured: Secured) -> None:
    for settings in (
        {"bootstrap.servers": f"{HOST}:{secured.tls_port}"},
        secured.librdkafka(secured.certified_port),
        secured.librdkafka(secured.plain_port),
    ):
        with pytest.raises(confluent_kafka.KafkaException):
            AdminClient(settings).list_topics(timeout=3)
    said = secured.broker.said()
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
