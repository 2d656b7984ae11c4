"""Asking a broker for the last elections."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, closing

from ottla.client.addresses import Address
from ottla.client.admin.last_elections import (
    WORDS,
    ControllerElection,
    Elections,
    LeaderElection,
    last_elections,
)
from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.errors import ClientError, RefusedError
from ottla.controller.elected import Why
from ottla.protocol.versions import ELECTIONS

WHERE = Address("b2", 9092)
ONE = {"at_ms": 5, "topic": "t", "partition": 0, "former": 1, "leader": -1, "leader_epoch": 3}
FOUND = {
    "elections": 1, "broker": 2, "since_ms": 4, "count": 3,
    "controllers": [{"at_ms": 4, "broker": 2, "epoch": 9}],
    "leaders": [{**ONE, "why": "offline"}, {**ONE, "leader": 2, "former": -1, "why": "new"}],
}  # fmt: skip


def asked(document: Any) -> Elections:
    def answer(address: str, body: bytes) -> bytes:
        assert address == "b2:9092"
        assert json.loads(body) == {"elections": 1}
        return json.dumps(document).encode()

    with FakeCluster({ELECTIONS: [answer]}).client() as client:
        return last_elections(client, WHERE)


def test_a_broker_lists_them() -> None:
    assert asked(FOUND) == Elections(
        2,
        4,
        3,
        [ControllerElection(4, 2, 9)],
        [
            LeaderElection(5, "t", 0, 1, None, 3, WORDS["offline"], True),
            # A newer broker may have other reasons.
            LeaderElection(5, "t", 0, None, 2, 3, "new", False),
        ],
    )


def test_each_reason_has_words() -> None:
    assert set(WORDS) == {each.value for each in Why}


def test_errors_say_what_was_wrong() -> None:
    def error(code: str) -> dict[str, Any]:
        return {"elections": 1, "error": {"code": code, "message": f"it is {code}"}}

    with pytest.raises(ClientError, match="elections: it is bad_request"):
        asked(error("bad_request"))
    with pytest.raises(RefusedError) as refused:
        asked(error("not_authorized"))
    assert refused.value.lacking == ("Describe", "cluster")
    others: list[Any] = [{"other": 1}, [], "x"]
    for other in others:
        with pytest.raises(NotOttlaError, match="not an Ottla"):
            asked(other)


def test_apache_kafka_closes_the_connection() -> None:
    cluster = FakeCluster({ELECTIONS: [closing]})
    with cluster.client() as client, pytest.raises(NotOttlaError, match="lists no elections"):
        last_elections(client, WHERE)
