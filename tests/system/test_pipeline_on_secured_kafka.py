"""One setting for source, look-ups and group: TLS and SASL on Apache Kafka itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
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
pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(500)]

ROOT = Path(__file__).parents[2]
PASSWORD = 'a"b\\c word'


def openssl(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        ["openssl", *arguments], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def make_certificates(folder: Path) -> None:
    """A CA, another CA, a broker's certificate and a client's with an encrypted key."""
    for name in ("ca", "other"):
        request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        files = ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
        openssl(folder, *request, "-subj", f"/CN={name}", *files)
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    for name, key in (("broker", ["-nodes"]), ("client", ["-passout", "pass:k e y"])):
        request = ["req", "-newkey", "rsa:2048", "-subj", f"/CN={name}", *key]
        openssl(folder, *request, "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed = ["x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key"]
        rest = ["-CAcreateserial", "-days", "2", "-extfile", "san"]
        openssl(folder, *signed, *rest, "-out", f"{name}.pem")
    # Java reads PBES1 alone, of the ways to encrypt a key (DefaultSslEngineFactory on Java 17).
    old = ["pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES", "-in", "client.key", "-out", "client8.key"]
    openssl(folder, *old, "-passin", "pass:k e y", "-passout", "pass:k e y")
    parts = [(folder / name).read_text() for name in ("broker.key", "broker.pem", "ca.pem")]
    (folder / "broker-store.pem").write_text("".join(parts))


@dataclass
class Secured:
    """A running Apache Kafka: SASL over TLS, and TLS that wants the client's certificate."""

    folder: Path
    plain: str
    sasl: str
    mutual: str

    def scram(self, **changed: Any) -> dict[str, Any]:
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.folder / "ca.pem"),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "anna",
            "sasl.password": PASSWORD,
        } | changed

    def certified(self) -> dict[str, Any]:
        """TLS with the client's own certificate."""
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.folder / "ca.pem"),
            "ssl.certificate.location": str(self.folder / "client.pem"),
            "ssl.key.location": str(self.folder / "client.key"),
            "ssl.key.password": "k e y",
        }


def broker_settings(folder: Path, ports: list[int]) -> dict[str, str]:
    module = "org.apache.kafka.common.security"
    listeners = {"PLAINTEXT": 0, "SASL_SSL": 1, "SSL": 2}
    urls = [f"{name}://127.0.0.1:{ports[index]}" for name, index in listeners.items()]
    return {
        **fixture.SETTINGS,
        "listeners": ",".join([*urls, f"CONTROLLER://127.0.0.1:{ports[3]}"]),
        "advertised.listeners": ",".join(urls),
        "controller.quorum.voters": f"1@127.0.0.1:{ports[3]}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL,CONTROLLER:PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{module}.plain.PlainLoginModule required user_anna="simple";'
        ),
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            f"{module}.scram.ScramLoginModule required;"
        ),
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker-store.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
    }


@pytest.fixture(scope="module")
def secured(kafka_jars: KafkaJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    folder = tmp_path_factory.mktemp("secured")
    make_certificates(folder)
    ports = free_ports(4)
    settings = broker_settings(folder, ports)
    broker = ApacheKafka(kafka_jars, folder / "kafka", settings, jvm=fixture.JVM_FLAGS)
    broker.start()
    try:
        for port in ports[:3]:
            broker.child.wait_for_port(port, fixture.START_WAIT_MS)
        plain, sasl, mutual = (f"127.0.0.1:{port}" for port in ports[:3])
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        user = UserScramCredentialUpsertion("anna", info, PASSWORD.encode())
        admin = AdminClient({"bootstrap.servers": plain})
        admin.alter_user_scram_credentials([user])["anna"].result(timeout=60)
        yield Secured(folder, plain, sasl, mutual)
    finally:
        broker.stop()


def make_topic(secured: Secured, name: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": secured.plain})
    for carrier, delay in (("HA", 1301), ("UA", 2)):
        producer.produce(name, f'{{"carrier": "{carrier}", "dep_delay": {delay}}}')
    producer.produce(name, "no flight")
    assert producer.flush(60) == 0


@pytest.mark.full  # test_pipeline_on_secured_broker.py runs it on a broker of Ottla
def test_the_guides_example_reaches_table_rejects_and_group(
    secured: Secured, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import AdminClient

    fetch_jars_once(tmp_path_factory)
    make_topic(secured, "flights")
    guide = (ROOT / "docs" / "pipeline-sources.md").read_text()
    blocks = re.findall(r"```py\n(.*?)```", guide, re.DOTALL)
    (example,) = (block for block in blocks if "sasl.username" in block)
    for old, new in (
        ("kafka.example.com:9093", secured.sasl),
        ("/etc/kafka/ca.pem", str(secured.folder / "ca.pem")),
        ('"sasl.username": "flights"', '"sasl.username": "anna"'),
    ):
        assert old in example
        example = example.replace(old, new)
    counts = """
for name in ("flights", "flights_rejected"):
    print(name, spark.read.format("delta").load(f"./lake/{name}").count())
"""
    done = subprocess.run(
        [sys.executable, "-c", example + counts],
        capture_output=True,
        text=True,
        timeout=400,
        cwd=tmp_path,
        env={**os.environ, "KAFKA_PASSWORD": PASSWORD},
    )

    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-2:] == ["flights 2", "flights_rejected 1"]
    assert PASSWORD not in done.stdout + done.stderr
    asked = ConsumerGroupTopicPartitions("flights-delta", [TopicPartition("flights", 0)])
    admin = AdminClient({"bootstrap.servers": secured.plain})
    answer = admin.list_consumer_group_offsets([asked])["flights-delta"].result(timeout=30)
    assert [partition.offset for partition in answer.topic_partitions] == [3]


def test_a_clients_certificate_works_for_both_clients(
    secured: Secured, kafka_jars: KafkaJars
) -> None:
    make_topic(secured, "mutual")
    kafka = read_settings(
        secured.mutual,
        {
            "security.protocol": "SSL",
            "ssl.ca.location": str(secured.folder / "ca.pem"),
            "ssl.certificate.location": str(secured.folder / "client.pem"),
            "ssl.key.location": str(secured.folder / "client8.key"),
            "ssl.key.password": "k e y",
        },
    )
    assert look_up(kafka, ["mutual"]).topics["mutual"].latest == {0: 3}

    # Spark's client is Kafka's own: its tool takes the very settings that Spark gets.
    lines = []
    for name, value in kafka.for_spark().items():
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
        lines.append(f"{name.removeprefix('kafka.')}={escaped}\n")
    settings = secured.folder / "client.properties"
    settings.write_text("".join(lines))
    tool = ["org.apache.kafka.tools.TopicCommand", "--bootstrap-server", secured.mutual]
    said = kafka_jars.run(*tool, "--command-config", str(settings), "--list")
    assert "mutual" in said.splitlines()


def test_plain_passwords_work_as_well(secured: Secured) -> None:
    make_topic(secured, "plain")
    kafka = secured.scram(**{"sasl.mechanism": "PLAIN", "sasl.password": "simple"})
    state = look_up(read_settings(secured.sasl, kafka), ["plain"])
    assert state.topics["plain"].latest == {0: 3}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sasl.password": "wr0ng"}, "refuse the login: .*Check sasl.mechanism, sasl.username"),
        ({"ssl.ca.location": "other.pem"}, "No TLS connection to .*certificate verify failed"),
    ],
)
def test_a_wrong_setting_is_one_line_within_seconds(
    secured: Secured, changed: dict[str, str], words: str
) -> None:
    changed = {
        name: str(secured.folder / value) if name == "ssl.ca.location" else value
        for name, value in changed.items()
    }
    with pytest.raises(PipelineError, match=words) as caught:
        look_up(read_settings(secured.sasl, secured.scram(**changed)), ["flights"])
    message = str(caught.value)
    print(message)
    assert "\n" not in message
    for secret in ("wr0ng", PASSWORD, "anna"):
        assert secret not in message
