"""Which broker gets a request, and which errors are waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, closing, coordinators, silent

from ottla.client.client import Client
from ottla.client.coordinators import FIND_COORDINATOR, Coordinated
from ottla.client.errors import (
    AdvertisedError,
    ClosedError,
    NoAnswerError,
    RefusedError,
    UnsupportedError,
)
from ottla.client.metadata import METADATA, Broker
from ottla.client.patience import Patience
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

ALTER_PARTITION_REASSIGNMENTS, LIST_PARTITION_REASSIGNMENTS = 45, 46
DESCRIBE_LOG_DIRS, HEARTBEAT = 35, 12
WAIT_S = 20
B2 = Broker(2, "b2", 9092)


def listing() -> Question:
    return Question(
        LIST_PARTITION_REASSIGNMENTS,
        0,
        lambda messages: messages.ListPartitionReassignmentsRequest(topics=None),
    )


def listed(code: ErrorCode = ErrorCode.none, message: str | None = None) -> Callable[..., Any]:
    build = messages_of(LIST_PARTITION_REASSIGNMENTS, 0)
    return lambda *_: build.ListPartitionReassignmentsResponse(
        error_code=code, error_message=message
    )


def ask_controller(cluster: FakeCluster, **patience: Any) -> Any:
    return cluster.client(**patience).ask_controller(listing(), "list the moves")


def cluster(*answers: Callable[..., Any]) -> FakeCluster:
    return FakeCluster({LIST_PARTITION_REASSIGNMENTS: answers})


def test_requests_are_repeated_while_the_controller_changes() -> None:
    brokers = cluster(closing, listed(ErrorCode.request_timed_out), silent, listed())
    assert ask_controller(brokers).error_code is ErrorCode.none
    assert 0 < brokers.slept_s < 2


def test_a_broker_that_does_not_forward_names_the_controller() -> None:
    brokers = cluster(listed(ErrorCode.not_controller), listed())
    brokers.controller = 2
    ask_controller(brokers)
    assert brokers.asked_of(LIST_PARTITION_REASSIGNMENTS) == ["b1:9092", "b2:9092"]


@pytest.mark.parametrize("answer", [closing, silent])
def test_a_long_time_without_a_controller_fails(answer: Callable[..., Any]) -> None:
    brokers = cluster(answer)
    reason = "cannot list the moves: no response from a controller within 30 s"
    with pytest.raises(NoAnswerError, match=reason):
        ask_controller(brokers)
    assert 30 < brokers.slept_s < 32


def test_what_the_controller_refuses_fails_at_once() -> None:
    brokers = cluster(listed(ErrorCode.cluster_authorization_failed, "Who are you?"))
    with pytest.raises(RefusedError, match=r"cannot list the moves: Who are you\?$") as raised:
        ask_controller(brokers)
    assert raised.value.code is ErrorCode.cluster_authorization_failed
    assert brokers.slept_s == 0
    with pytest.raises(RefusedError, match=r"cannot list the moves: not controller\."):
        ask_controller(cluster(listed(ErrorCode.not_controller)))


def test_a_long_wait_for_a_controller_is_told_once() -> None:
    told, lines = threading.Event(), []

    def said(line: str) -> None:
        lines.append(line)
        told.set()

    def late(address: str, request: Any) -> Any:
        assert told.wait(WAIT_S)
        return listed()()

    brokers = cluster(late)
    patience = Patience(notice_s=0.01)
    client = Client("b1:9092", patience=patience, on_wait=said, connect=brokers.connect)
    client.ask_controller(listing(), "list the moves")
    assert lines == ["Waiting up to 30 s for a controller ..."]


def test_the_newest_version_that_both_sides_know() -> None:
    def log_dirs(oldest: int = 1) -> Question:
        build = lambda messages: messages.DescribeLogDirsRequest(topics=None)  # noqa: E731
        return Question(DESCRIBE_LOG_DIRS, 4, build, oldest, "3.3")

    brokers = FakeCluster({DESCRIBE_LOG_DIRS: [lambda _, request: request.__version__]})
    client = brokers.client()
    assert client.ask_broker(1, log_dirs()) == 4
    brokers.versions["b2:9092"] = {DESCRIBE_LOG_DIRS: (1, 2)}
    assert client.ask_broker(2, log_dirs()) == 2
    with pytest.raises(UnsupportedError) as raised:
        client.ask_broker(2, log_dirs(oldest=4))
    assert raised.value.reason == (
        "the broker at b2:9092 does not support DescribeLogDirs in version 4"
    )
    assert raised.value.hint == "Apache Kafka 3.3 and later do."


def test_a_broker_that_is_not_live() -> None:
    with pytest.raises(NoAnswerError, match="broker 9 is not live"):
        FakeCluster().client().ask_broker(9, listing())


def test_a_broker_that_came_back_elsewhere_is_looked_up_again() -> None:
    brokers = FakeCluster({HEARTBEAT: [lambda address, _: address]})
    client = brokers.client("b1:9092,b3:9092")
    question = Question(HEARTBEAT, 4, lambda messages: messages.HeartbeatRequest(group_id="g"))
    assert client.ask_broker(2, question) == "b2:9092"
    moved = messages_of(METADATA, 12)
    at_b4 = moved.MetadataResponseBroker(node_id=2, host="b4", port=9092)
    brokers.answers[METADATA] = [lambda *_: moved.MetadataResponse(brokers=(at_b4,), topics=())]
    brokers.unreachable.add("b2:9092")
    assert client.ask_broker(2, question) == "b4:9092"


def test_advertised_addresses_that_cannot_be_reached() -> None:
    brokers = FakeCluster()
    assert sorted(brokers.client("other:1").metadata().brokers) == [1, 2]
    brokers.unreachable |= {"b1:9092", "b2:9092"}
    with pytest.raises(AdvertisedError, match="other:1 advertises b1:9092, b2:9092, which cannot"):
        brokers.client("other:1").metadata()


def test_keys_are_gathered_by_coordinator_once_each_has_one() -> None:
    brokers = FakeCluster()
    moving = coordinators(ErrorCode.coordinator_not_available)
    brokers.answers[FIND_COORDINATOR] = [moving, coordinators()]
    found = brokers.client().coordinators(Coordinated.TRANSACTION, ["x", "y"])
    assert found == {B2: ["x", "y"]}
    assert brokers.slept_s > 0
    brokers.answers[FIND_COORDINATOR] = [moving]
    with pytest.raises(RefusedError, match="find the coordinator of 'y': coordinator not avail"):
        brokers.client().coordinators(Coordinated.TRANSACTION, ["x", "y"])


def test_an_older_broker_is_asked_for_one_coordinator_at_a_time() -> None:
    brokers = FakeCluster()
    brokers.versions["b1:9092"] = {FIND_COORDINATOR: (0, 3)}
    assert brokers.client().coordinators(Coordinated.GROUP, ["g", "h"]) == {B2: ["g", "h"]}
    assert [each.key for each in brokers.requests(FIND_COORDINATOR)] == ["g", "h"]


def beats(*codes: ErrorCode) -> FakeCluster:
    build = messages_of(HEARTBEAT, 4)

    def beat(code: ErrorCode) -> Callable[..., Any]:
        return lambda *_: build.HeartbeatResponse(error_code=code)

    return FakeCluster({HEARTBEAT: [beat(code) for code in codes]})


def test_the_coordinator_is_looked_up_again_when_it_has_moved() -> None:
    brokers = beats(ErrorCode.not_coordinator, ErrorCode.concurrent_transactions, ErrorCode.none)
    question = Question(HEARTBEAT, 4, lambda messages: messages.HeartbeatRequest(group_id="g"))
    brokers.client().ask_coordinator(
        Coordinated.GROUP, "g", question, "beat", passing=[ErrorCode.concurrent_transactions]
    )
    assert brokers.asked_of(HEARTBEAT) == ["b2:9092"] * 3
    assert len(brokers.requests(FIND_COORDINATOR)) == 3
    with pytest.raises(RefusedError, match="cannot beat: concurrent transactions"):
        beats(ErrorCode.concurrent_transactions).client().ask_coordinator(
            Coordinated.GROUP, "g", question, "beat"
        )


def test_a_request_of_a_certain_broker_is_not_sent_to_another() -> None:
    brokers = FakeCluster({HEARTBEAT: [closing]})
    question = Question(HEARTBEAT, 4, lambda messages: messages.HeartbeatRequest(group_id="g"))
    with pytest.raises(ClosedError):
        brokers.client().ask_broker(2, question)
    assert brokers.asked_of(HEARTBEAT) == ["b2:9092"]
