"""Requests of the cluster commands over a plain connection: answers, refusals, and broken ones."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.cli import cluster_client
from ottla.cli.cluster_client import (
    ALTER_PARTITION_REASSIGNMENTS,
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
    METADATA_TOPIC,
    any_brokers_view,
    cancel_reassignments,
    controller_epoch,
    elect_leaders,
    reassign,
    reassignments,
)
from ottla.cli.failures import Failed
from ottla.cli.screen import note
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import read_request_body, read_request_header, write_response
from ottla.protocol.messages import messages_of

Answer = Callable[[Any], Any]


@contextmanager
def broker(*answers: Answer | bytes) -> Iterator[str]:
    """Takes a connection for each answer, in their order; bytes are sent as they are."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for answer in answers:
                connection, _ = server.accept()
                with connection:
                    size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL))
                    frame = memoryview(connection.recv(size, socket.MSG_WAITALL))
                    if isinstance(answer, bytes):
                        connection.sendall(answer)
                        continue
                    header = read_request_header(frame)
                    response = answer(read_request_body(header, frame))
                    connection.sendall(b"".join(write_response(response, header.correlation_id)))

        thread = threading.Thread(target=serve)
        thread.start()
        yield "127.0.0.1:{1}".format(*server.getsockname())
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_client, "AGAIN_PAUSE_S", 0.01)


def listed(code: ErrorCode = ErrorCode.none) -> Answer:
    def answer(request: Any) -> Any:
        assert request.topics is None
        build = messages_of(LIST_PARTITION_REASSIGNMENTS, 0)
        moving = build.OngoingPartitionReassignment(
            partition_index=2, replicas=(1, 2, 3), adding_replicas=(3,), removing_replicas=(1,)
        )
        topic = build.OngoingTopicReassignment(name="t", partitions=(moving,))
        return build.ListPartitionReassignmentsResponse(
            error_code=code, error_message=None, topics=(topic,)
        )

    return answer


def altered(
    code: ErrorCode, message: str | None = None, replicas: tuple[int, ...] | None = (3, 2)
) -> Answer:
    def answer(request: Any) -> Any:
        build = messages_of(ALTER_PARTITION_REASSIGNMENTS, 0)
        (topic,) = request.topics
        (partition,) = topic.partitions
        assert (topic.name, partition.partition_index, partition.replicas) == ("t", 2, replicas)
        refused = build.ReassignablePartitionResponse(
            partition_index=2, error_code=code, error_message=message
        )
        response = build.ReassignableTopicResponse(name="t", partitions=(refused,))
        return build.AlterPartitionReassignmentsResponse(
            error_code=ErrorCode.none, error_message=None, responses=(response,)
        )

    return answer


def quorum(code: ErrorCode) -> Answer:
    def answer(request: Any) -> Any:
        build = messages_of(DESCRIBE_QUORUM, 0)
        assert request.topics[0].topic_name == METADATA_TOPIC
        told = build.PartitionData(
            partition_index=0,
            error_code=code,
            leader_id=1,
            leader_epoch=17,
            high_watermark=0,
            current_voters=(),
            observers=(),
        )
        topic = build.TopicData(topic_name=METADATA_TOPIC, partitions=(told,))
        return build.DescribeQuorumResponse(error_code=ErrorCode.none, topics=(topic,))

    return answer


def test_ongoing_reassignments_are_listed_by_partition() -> None:
    with broker(listed()) as address:
        found = reassignments(address)
    assert list(found) == [("t", 2)]
    assert found["t", 2].removing_replicas == (1,)


def test_requests_are_retried_while_the_controller_changes() -> None:
    with broker(b"", listed(ErrorCode.not_controller), listed()) as address:
        assert ("t", 2) in reassignments(address)


NO_CONTROLLER = (
    r"cannot list the ongoing reassignments: no response from a controller within -1 s\."
)


def test_a_long_time_without_a_controller_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_client, "AGAIN_FOR_S", -1)
    with broker(b"") as address, pytest.raises(Failed, match=NO_CONTROLLER) as raised:
        reassignments(address)
    assert raised.value.hint == "To see the cluster's state: ottla cluster describe"


def test_a_silent_broker_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_client, "AGAIN_FOR_S", -1)
    monkeypatch.setattr(cluster_client, "LAST_TRY_S", 0.1)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(Failed, match=NO_CONTROLLER),
    ):
        reassignments("127.0.0.1:{1}".format(*silent.getsockname()))


def test_a_wait_for_a_controller_prints_one_notice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told, listing = threading.Event(), listed()

    def said(text: str) -> None:
        note(text)
        told.set()

    def late(request: Any) -> Any:
        assert told.wait(20)
        return listing(request)

    monkeypatch.setattr(cluster_client, "SILENT_S", 0.01)
    monkeypatch.setattr(cluster_client, "note", said)
    with broker(late) as address:
        assert ("t", 2) in reassignments(address)
    assert capsys.readouterr().err == "Waiting up to 30 s for a controller ...\n"


def test_a_finished_wait_prints_no_notice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster_client, "SILENT_S", 600)
    with broker(listed()) as address:
        before = threading.enumerate()
        assert ("t", 2) in reassignments(address)
        left = [each for each in threading.enumerate() if each not in before]
    for thread in left:
        thread.join(20)
        assert not thread.is_alive()
    assert capsys.readouterr().err == ""


def test_an_invalid_response_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_client, "AGAIN_FOR_S", -1)
    nonsense = b"\0\0\0\x0a" + b"\xff" * 10
    with broker(nonsense) as address, pytest.raises(Failed, match=r"is not a Kafka response: "):
        reassignments(address)


def test_a_refused_move_names_the_partition_and_the_reason() -> None:
    targets = {"t": {2: [3, 2]}}
    with broker(altered(ErrorCode.none)) as address:
        reassign(address, targets)
    refused = altered(ErrorCode.invalid_replica_assignment, "broker 9 is not there")
    with broker(refused) as address, pytest.raises(Failed) as raised:
        reassign(address, targets)
    assert str(raised.value) == "cannot move t-2: broker 9 is not there."


def test_any_broker_can_describe_the_cluster() -> None:
    def view(code: ErrorCode) -> Answer:
        def answer(request: Any) -> Any:
            assert request.include_cluster_authorized_operations is False
            build = messages_of(DESCRIBE_CLUSTER, 0)
            node = build.DescribeClusterBroker(broker_id=3, host="h", port=1, rack="east")
            return build.DescribeClusterResponse(
                error_code=code,
                error_message=None,
                cluster_id="x",
                controller_id=-1,
                brokers=(node,),
                cluster_authorized_operations=-1,
            )

        return answer

    with broker(view(ErrorCode.none)) as address:
        told = any_brokers_view(address)
    assert told is not None
    assert (told.cluster_id, told.controller_id, told.brokers[0].rack) == ("x", -1, "east")
    with broker(view(ErrorCode.cluster_authorization_failed)) as address:
        assert any_brokers_view(address) is None
    # As a listener does that wants TLS.
    with broker(b"") as address:
        assert any_brokers_view(address) is None


def test_the_controllers_epoch_is_shown_if_known() -> None:
    with broker(quorum(ErrorCode.none)) as address:
        assert controller_epoch(address) == 17
    with broker(quorum(ErrorCode.unknown_topic_or_partition)) as address:
        assert controller_epoch(address) is None
    with broker(b"") as address:
        assert controller_epoch(address) is None


def test_moves_are_cancelled_and_one_that_has_ended_is_no_error() -> None:
    for code in (ErrorCode.none, ErrorCode.no_reassignment_in_progress):
        with broker(altered(code, replicas=None)) as address:
            cancel_reassignments(address, [("t", 2)])
    refused = altered(ErrorCode.cluster_authorization_failed, replicas=None)
    with broker(refused) as address, pytest.raises(Failed, match="cannot cancel the move of t-2"):
        cancel_reassignments(address, [("t", 2)])


def elected(code: ErrorCode, of_partition: ErrorCode = ErrorCode.none) -> Answer:
    def answer(request: Any) -> Any:
        assert request.election_type == 1
        (topic,) = request.topic_partitions
        build = messages_of(ELECT_LEADERS, 2)
        results = tuple(
            build.PartitionResult(partition_id=index, error_code=each, error_message=None)
            for index, each in zip(
                topic.partitions, (of_partition, ErrorCode.election_not_needed), strict=True
            )
        )
        result = build.ReplicaElectionResult(topic=topic.topic, partition_result=results)
        return build.ElectLeadersResponse(error_code=code, replica_election_results=(result,))

    return answer


def test_elections_that_fail_are_returned_with_their_reasons() -> None:
    places = [("t", 0), ("t", 1)]
    with broker(elected(ErrorCode.none)) as address:
        assert elect_leaders(address, places, unclean=True) == {}
    with broker(elected(ErrorCode.none, ErrorCode.eligible_leaders_not_available)) as address:
        found = elect_leaders(address, places, unclean=True)
    assert found == {("t", 0): "eligible leaders not available"}
    refused = elected(ErrorCode.cluster_authorization_failed)
    with broker(refused) as address, pytest.raises(Failed, match="cannot elect leaders: cluster"):
        elect_leaders(address, places, unclean=True)
