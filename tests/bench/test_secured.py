"""Brokers with a second listener: real clients that authenticate over TLS, and under ACLs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from bench.connecting import CLOSE, KEEP, Connecting
from bench.figures.start import first_produce
from bench.measure import OTTLA, Bench, ClientError
from bench.secured import AUTHORIZERS, SASL_PLAINTEXT, running
from confluent_kafka import KafkaError, Producer

from bench.figures import secured_requests

BENCH = Bench(None, Path("no tool"), quick=True)


def test_clients_connect_with_tls_and_a_password() -> None:
    with running(OTTLA, BENCH) as secured, Connecting(secured, 2) as clients:
        first_produce(secured.address, "t", 0, secured.client)
        assert "sasl.mechanism=SCRAM-SHA-256" in secured.options
        assert clients.connect(4, CLOSE) > 0
        assert clients.connect(4, KEEP) > 0


def test_a_wrong_password_is_no_measurement() -> None:
    with running(OTTLA, BENCH) as secured:
        wrong = replace(secured, client={**secured.client, "sasl.password": "wrong"})
        with pytest.raises(ClientError, match="ended with 1"), Connecting(wrong, 1):
            pass


def test_the_user_writes_because_of_one_of_many_acls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secured_requests, "ACLS", 20)
    rules = {"authorizer.class.name": AUTHORIZERS[OTTLA], "super.users": "User:ANONYMOUS"}
    with running(OTTLA, BENCH, SASL_PLAINTEXT, rules) as secured:
        secured_requests.begin(secured)
        assert sent(secured.address, secured.client) == KafkaError.TOPIC_AUTHORIZATION_FAILED
        secured_requests.add_acls(secured.broker.address)
        assert sent(secured.address, secured.client) is None


def sent(address: str, client: Mapping[str, str]) -> int | None:
    """The error of one record, None if it is acknowledged."""
    codes: list[int] = []
    producer = Producer({"bootstrap.servers": address, "log_level": 0, **client})

    def told(error: KafkaError | None, _: object) -> None:
        if error is not None:
            codes.append(error.code())

    producer.produce("small-0", b"v", partition=0, on_delivery=told)
    assert producer.flush(30) == 0
    return codes[0] if codes else None
