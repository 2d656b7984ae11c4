"""What the brokers of a cluster know of a group, put together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, closing

from ottla.client.admin.group_history import group_history
from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.errors import RefusedError
from ottla.protocol.versions import GROUP_HISTORY


def cluster_of(*answers: Any) -> FakeCluster:
    left = list(answers)

    def answer(address: str, body: bytes) -> bytes:
        assert json.loads(body) == {"group_history": 1, "group": "g"}
        return json.dumps(left.pop(0) if len(left) > 1 else left[0]).encode()

    return FakeCluster({GROUP_HISTORY: [answer]})


def known(broker: int, *times: int) -> dict[str, Any]:
    entries = [{"group": "g", "at_ms": at_ms, "number": at_ms} for at_ms in times]
    return {"group_history": 1, "broker": broker, "is_coordinator": True, "entries": entries}


def test_what_all_brokers_know_is_in_order_of_time() -> None:
    with cluster_of(known(1, 10, 30), known(2, 20)).client() as client:
        found = group_history(client, "g")
    assert [(each["at_ms"], each["broker"]) for each in found.entries][:3] == [
        (10, 1),
        (20, 2),
        (30, 1),
    ]
    assert found.unasked == {}


def test_a_broker_that_refuses_says_why() -> None:
    error = {"group_history": 1, "error": {"code": "not_authorized", "message": "bob needs more"}}
    with (
        cluster_of(error).client() as client,
        pytest.raises(RefusedError, match="bob needs more") as refused,
    ):
        group_history(client, "g")
    assert refused.value.lacking == ("Describe", "group", "g")


@pytest.mark.parametrize("answer", [{"other": 1}, [], "x"])
def test_a_server_that_answers_something_else(answer: Any) -> None:
    with cluster_of(answer).client() as client, pytest.raises(NotOttlaError, match="not an Ottla"):
        group_history(client, "g")


def test_apache_kafka_closes_the_connection() -> None:
    cluster = FakeCluster({GROUP_HISTORY: [closing]})
    with cluster.client() as client, pytest.raises(NotOttlaError, match="keeps no history"):
        group_history(client, "g")
