"""The one request of Ottla's own: who is asked, and servers that do not know it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, closing, silent

from ottla.client.admin.journeys import ask_journey
from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.errors import NoAnswerError
from ottla.protocol.versions import JOURNEY

QUESTION: dict[str, Any] = {"journey": 1, "topic": "t"}
TOLD: dict[str, Any] = {"journey": 1, "topic": "t", "partition": 0}
ELSEWHERE = TOLD | {"elsewhere": [1]}
NOT_LEADER: dict[str, Any] = {"journey": 1, "error": {"code": "not_leader", "message": "m"}}
NO_KEY: dict[str, Any] = {"journey": 1, "error": {"code": "key_not_found", "message": "m"}}


def joined(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"joined": answers}


class Journeys:
    """A cluster that answers with these documents in turn, and remembers who was asked."""

    def __init__(self, *documents: Any) -> None:
        self.asked: list[str] = []
        left = list(documents)

        def answer(address: str, body: bytes) -> bytes:
            assert json.loads(body)["topic"] == "t"
            self.asked.append(address)
            document = left.pop(0) if len(left) > 1 else left[0]
            return json.dumps(document).encode()

        self.cluster = FakeCluster({JOURNEY: [answer]})

    def ask(self, **question: Any) -> Any:
        return ask_journey(self.cluster.client(), QUESTION | question, joined)


def test_a_broker_that_leads_is_the_only_one() -> None:
    journeys = Journeys(TOLD)
    assert journeys.ask() == TOLD
    assert journeys.asked == ["b1:9092"]


def test_the_request_goes_to_the_leader() -> None:
    journeys = Journeys(NOT_LEADER, TOLD)
    assert journeys.ask(partition=1) == {"joined": [TOLD]}
    assert journeys.asked == ["b1:9092", "b2:9092"]


def test_all_leaders_are_asked_about_all_partitions() -> None:
    journeys = Journeys(ELSEWHERE, ELSEWHERE, NO_KEY)
    assert journeys.ask() == {"joined": [ELSEWHERE, NO_KEY]}
    assert journeys.asked == ["b1:9092", "b1:9092", "b2:9092"]


def test_without_a_leader_the_brokers_own_response_is_used() -> None:
    assert Journeys(NOT_LEADER).ask(partition=2) == NOT_LEADER


def test_leaders_are_asked_again_while_leadership_moves() -> None:
    settling = Journeys(NOT_LEADER, NOT_LEADER, TOLD)
    assert settling.ask(partition=0) == {"joined": [TOLD]}
    moving = Journeys(NOT_LEADER)
    assert moving.ask(partition=0) == {"joined": [NOT_LEADER]}
    assert moving.cluster.slept_s > 30


@pytest.mark.parametrize("body", [b"no json", b"[1]", b"{}", b""])
def test_another_answer_is_not_ottlas(body: bytes) -> None:
    cluster = FakeCluster({JOURNEY: [lambda *_: body]})
    with pytest.raises(NotOttlaError, match="the server at b1:9092 is not an Ottla broker"):
        ask_journey(cluster.client(), QUESTION, joined)


def test_a_server_without_this_request_is_not_an_ottla_broker() -> None:
    with pytest.raises(NotOttlaError, match="not an Ottla broker: it closed the connection"):
        ask_journey(FakeCluster({JOURNEY: [closing]}).client(), QUESTION, joined)


def test_a_missing_response_fails() -> None:
    with pytest.raises(NoAnswerError, match="no response from"):
        ask_journey(FakeCluster({JOURNEY: [silent]}).client(), QUESTION, joined)
