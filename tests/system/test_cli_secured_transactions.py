"""`ottla transaction` and `ottla health` over TLS and SASL, on Apache Kafka itself."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.system import test_pipeline_on_secured_kafka
from tests.system.test_pipeline_on_secured_kafka import PASSWORD, Secured

kafka_jars = test_pipeline_on_secured_kafka.kafka_jars
secured = test_pipeline_on_secured_kafka.secured
pytestmark = [pytest.mark.full, pytest.mark.kafka, pytest.mark.timeout(300)]

WAIT_S = 60


def typed(address: str, settings: dict[str, str], *words: str, code: int = 0) -> Any:
    options = [f"--client-config={name}={value}" for name, value in settings.items()]
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *words, "--json", "--bootstrap", address, *options],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr


@pytest.mark.parametrize("listener", ["SCRAM over TLS", "PLAIN over TLS", "own certificate"])
def test_the_commands(secured: Secured, listener: str) -> None:
    address, settings = secured.sasl, secured.scram()
    if listener == "PLAIN over TLS":
        settings = secured.scram(**{"sasl.mechanism": "PLAIN", "sasl.password": "simple"})
    if listener == "own certificate":
        address, settings = secured.mutual, secured.certified()
    name = f"over {listener}"
    producer = Producer({"bootstrap.servers": address, "transactional.id": name, **settings})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce("secured", "open", partition=0)
    assert producer.flush(WAIT_S) == 0
    (listed,) = [
        each
        for each in typed(address, settings, "transaction", "list")
        if each["transactional_id"] == name
    ]
    assert listed["state"] == "Ongoing"
    (described,) = typed(address, settings, "transaction", "describe", name)
    assert [each["topic"] for each in described["partitions"]] == ["secured"]
    assert typed(address, settings, "transaction", "hanging", "--written-before", "0s") == []
    assert typed(address, settings, "health")["hanging_transactions"] == []
    assert typed(address, settings, "transaction", "abort", name, "--yes")["aborted"]
    (described,) = typed(address, settings, "transaction", "describe", name)
    assert described["state"] == "Empty"


def test_a_wrong_password_and_an_unknown_certificate(secured: Secured) -> None:
    wrong = secured.scram(**{"ssl.ca.location": str(secured.folder / "other.pem")})
    said = typed(secured.sasl, wrong, "transaction", "list", code=1)
    assert said.count("\n") <= 2
    assert PASSWORD not in said
