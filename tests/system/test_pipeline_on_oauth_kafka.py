"""OAUTHBEARER with one setting: a token endpoint, and Apache Kafka that checks its tokens."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from components.apache_kafka import ApacheKafka, KafkaJars
from tests.pipelines.jars import fetch_jars_once

from components import fixture
from ottla.pipelines import PipelineError
from ottla.pipelines.kafka.brokers import look_up
from ottla.pipelines.kafka.settings import read_settings
from ottla.testing.ports import free_ports

kafka_jars = fixture.kafka_jars
pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(900)]

CLIENT, SECRET = "flights", "a secret of its own"
ISSUER = "https://issuer.example.org"
JOB = """
import json, sys
from ottla.pipelines import session, to_delta, topic

address, folder, kafka = sys.argv[1:]
spark = session("job", master="local[2]", conf={
    "spark.ui.enabled": False, "spark.ui.showConsoleProgress": False,
})
rows = topic(
    spark, "flights", bootstrap_servers=address, schema="n INT", kafka=json.loads(kafka)
)
to_delta(
    rows.select("value.n"), f"{folder}/table", checkpoint=f"{folder}/checkpoint",
    trigger={"availableNow": True}, group="flights-delta",
).awaitTermination()
print("rows", spark.read.format("delta").load(f"{folder}/table").count())
"""


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class TokenServer:
    """An identity provider: tokens for the client's secret, and the key to check them with."""

    folder: Path
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.key = self.folder / "token.key"
        self.openssl("genrsa", "-out", str(self.key), "2048")
        said = self.openssl("rsa", "-in", str(self.key), "-noout", "-modulus").decode()
        self.modulus = bytes.fromhex(said.partition("=")[2].strip())
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
                form = urllib.parse.parse_qs(body)
                scheme, _, given = self.headers.get("Authorization", "").partition(" ")
                client, _, secret = base64.b64decode(given).decode().partition(":")
                known = (scheme, client, secret) == ("Basic", CLIENT, SECRET)
                server.asked.append(form["grant_type"][0])
                if known:
                    self.answer(200, {"access_token": server.token(), "expires_in": 600})
                else:
                    self.answer(401, {"error": "invalid_client"})

            def do_GET(self) -> None:
                self.answer(200, {"keys": [server.public_key()]})

            def answer(self, status: int, document: dict[str, Any]) -> None:
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *given: Any) -> None:
                """The test's own output stays readable."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def openssl(self, *arguments: str, data: bytes | None = None) -> bytes:
        done = subprocess.run(
            ["openssl", *arguments], input=data, capture_output=True, timeout=60, check=True
        )
        return done.stdout

    def public_key(self) -> dict[str, str]:
        exponent = encoded((65_537).to_bytes(3, "big"))
        key = {"kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256"}
        return {**key, "n": encoded(self.modulus), "e": exponent}

    def token(self) -> str:
        now = int(time.time())
        parts = (
            {"alg": "RS256", "typ": "JWT", "kid": "one"},
            {
                "iss": ISSUER,
                "sub": CLIENT,
                "aud": "kafka",
                "scope": "kafka",
                "iat": now,
                "exp": now + 600,
            },
        )
        signed = ".".join(encoded(json.dumps(part).encode()) for part in parts)
        signature = self.openssl("dgst", "-sha256", "-sign", str(self.key), data=signed.encode())
        return f"{signed}.{encoded(signature)}"

    def settings(self, **changed: str) -> dict[str, str]:
        """The client's settings, by librdkafka's names."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": CLIENT,
            "sasl.oauthbearer.client.secret": SECRET,
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.token.endpoint.url": f"{self.address}/token",
        } | changed


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    server = TokenServer(tmp_path_factory.mktemp("tokens"))
    yield server
    server.server.shutdown()


@pytest.fixture(scope="module")
def kafka(
    tokens: TokenServer, kafka_jars: KafkaJars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The plain and the OAuth address of an Apache Kafka that takes those tokens."""
    plain, oauth, controller = free_ports(3)
    urls = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{oauth}"
    package = "org.apache.kafka.common.security.oauthbearer"
    listener = "listener.name.sasl_plaintext.oauthbearer"
    settings = {
        **fixture.SETTINGS,
        "listeners": f"{urls},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": urls,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": f"{tokens.address}/keys",
        "sasl.oauthbearer.expected.audience": "kafka",
        # Required since Apache Kafka 4.4.
        "sasl.oauthbearer.expected.issuer": ISSUER,
        f"{listener}.sasl.jaas.config": f"{package}.OAuthBearerLoginModule required;",
        f"{listener}.sasl.server.callback.handler.class": (
            f"{package}.OAuthBearerValidatorCallbackHandler"
        ),
    }
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens.address}/keys"
    folder = tmp_path_factory.mktemp("oauth") / "kafka"
    broker = ApacheKafka(kafka_jars, folder, settings, jvm=f"{fixture.JVM_FLAGS} {allowed}")
    broker.start()
    try:
        for port in (plain, oauth):
            broker.child.wait_for_port(port, fixture.START_WAIT_MS)
        yield f"127.0.0.1:{plain}", f"127.0.0.1:{oauth}"
    finally:
        broker.stop()


@pytest.mark.full
def test_the_source_the_look_ups_and_the_group_log_in_with_tokens(
    kafka: tuple[str, str],
    tokens: TokenServer,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient

    fetch_jars_once(tmp_path_factory)
    plain, oauth = kafka
    producer = Producer({"bootstrap.servers": plain})
    for number in range(5):
        producer.produce("flights", json.dumps({"n": number}))
    assert producer.flush(60) == 0

    done = subprocess.run(
        [sys.executable, "-c", JOB, oauth, tmp_path, json.dumps(tokens.settings())],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ,
    )

    assert done.returncode == 0, done.stderr[-4_000:]
    assert done.stdout.splitlines()[-1] == "rows 5"
    assert SECRET not in done.stdout + done.stderr
    assert set(tokens.asked) == {"client_credentials"}
    asked = ConsumerGroupTopicPartitions("flights-delta", [TopicPartition("flights", 0)])
    admin = AdminClient({"bootstrap.servers": plain})
    answer = admin.list_consumer_group_offsets([asked])["flights-delta"].result(timeout=30)
    assert [partition.offset for partition in answer.topic_partitions] == [5]


def test_a_wrong_secret_is_one_line(kafka: tuple[str, str], tokens: TokenServer) -> None:
    wrong = {"sasl.oauthbearer.client.secret": "wr0ng"}
    with pytest.raises(PipelineError) as caught:
        look_up(read_settings(kafka[1], tokens.settings(**wrong)), ["flights"])
    said = str(caught.value)
    assert "\n" not in said
    assert re.search(r"401|invalid_client|token", said), said
    assert "wr0ng" not in said
