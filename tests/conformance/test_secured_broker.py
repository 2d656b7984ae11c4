"""The broker that suites with users of their own get, and the scripts that they call."""

import os
import ssl
import subprocess
from pathlib import Path

import confluent_kafka
import pytest
from components.apache_kafka import KafkaJars
from confluent_kafka.admin import AdminClient
from conformance.kafka_scripts import write_scripts
from conformance.librdkafka_alone import PASSWORD, forms_of
from conformance.secured_broker import KEY_PASSWORD, running

from ottla.security.development.certificates import issue, make_authority, write
from ottla.testing.ports import HOST

WITHIN_S = 30
ALICE = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.username": "alice",
    "sasl.password": "alice-secret",
}


def test_everybody_that_the_suites_know_can_connect(tmp_path: Path) -> None:
    with running(tmp_path, {}) as broker:
        sasl = {"bootstrap.servers": f"{HOST}:{broker.sasl_port}"}
        folder = broker.certificates
        certified = {
            "bootstrap.servers": f"{HOST}:{broker.tls_port}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(folder / "ca.crt"),
            "ssl.certificate.location": str(folder / "client.crt"),
            "ssl.key.location": str(folder / "client.key"),
            "ssl.key.password": KEY_PASSWORD,
        }
        mechanisms = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
        clients = [sasl | ALICE | {"sasl.mechanism": each} for each in mechanisms]
        clients += [certified, {"bootstrap.servers": broker.plaintext}]
        for client in clients:
            assert AdminClient(client).list_topics(timeout=WITHIN_S).brokers
        wrong = sasl | ALICE | {"sasl.mechanism": "PLAIN", "sasl.password": "wrong"}
        with pytest.raises(confluent_kafka.KafkaException):
            AdminClient(wrong | {"log_level": 0}).list_topics(timeout=2)


def test_a_script_runs_the_class_with_all_its_words(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    java.chmod(0o755)
    place = write_scripts(KafkaJars(tmp_path / "jars", str(java)), tmp_path)
    done = subprocess.run(
        [place / "kafka-acls.sh", "--topic", "a b"], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("|org.apache.kafka.tools.AclCommand|--topic|a b|")
    assert os.access(place / "kafka-configs.sh", os.X_OK)


def test_the_forms_of_a_key_and_a_certificate(tmp_path: Path) -> None:
    authority = make_authority("tests", 1)
    write(tmp_path / "authority.pem", authority.certificate)
    write(tmp_path / "client.pem", issue(authority, "client", [], 1).together)
    files = forms_of(tmp_path / "client.pem", tmp_path / "authority.pem", tmp_path)
    context = ssl.create_default_context(cafile=files["SSL_all_cas_pem"])
    context.load_cert_chain(files["SSL_pub_pem"], files["SSL_priv_pem"], PASSWORD)
    assert set(files) == {
        "SSL_password", "SSL_pkcs", "SSL_pub_pem", "SSL_pub_der", "SSL_priv_pem", "SSL_priv_der",
        "SSL_ca_der", "SSL_all_cas_pem",
    }  # fmt: skip
