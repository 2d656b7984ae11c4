"""Requests that librdkafka has no call for: reassignments, the controller's epoch, and what any
broker knows of the cluster, which librdkafka asks of the controller alone.

A plain connection for each request, to the first broker that takes one: any broker hands on what
only the controller can answer, and with a new connection the next question survives the end of
the broker that answered the last one.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from threading import Timer
from typing import Any, Final

from ottla.cli.failures import Failed
from ottla.cli.plain_connection import CLIENT_ID, CORRELATION_ID, connected, received
from ottla.cli.screen import note
from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.frames import read_response, write_request
from ottla.protocol.messages import messages_of

ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
DESCRIBE_QUORUM: Final = 55
DESCRIBE_CLUSTER: Final = 60
METADATA_TOPIC: Final = "__cluster_metadata"
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
ANSWER_WITHIN_S: Final = 30.0
ANSWER_TIMEOUT_MS: Final = 25_000
AGAIN_FOR_S: Final = 30.0
"""How long a controller is waited for: an election takes up to a ZooKeeper session's timeout."""
AGAIN_PAUSE_S: Final = 0.5
LAST_TRY_S: Final = 1.0
VIEW_WITHIN_S: Final = 5.0
SILENT_S: Final = 2.0
"""After which a person is told what is waited for."""
STATE_HINT: Final = "To see how the cluster is: ottla cluster describe"
# The controller is changing; who asks again soon is answered.
PASSING: Final = frozenset(
    {
        ErrorCode.not_controller,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.request_timed_out,
        ErrorCode.unknown_server_error,
    }
)

Partition = tuple[str, int]
Assignments = Mapping[str, Mapping[int, Sequence[int]]]


def answered(connection: socket.socket, request: Any) -> Any:
    """The response. Raises OSError, EOFError or DecodeError where there is none."""
    connection.sendall(write_request(request, CORRELATION_ID, CLIENT_ID.decode()))
    frame = received(connection, MAX_ANSWER_BYTES)
    return read_response(request.__api_key__, request.__version__, frame)[1]


class NoAnswer(Failed):
    """Whoever was asked said nothing, or closed the connection."""


def ask(bootstrap: str, request: Any, within_s: float = ANSWER_WITHIN_S) -> Any:
    """The answer to a request message of kio's. Raises Failed, NoAnswer when there is none."""
    try:
        with connected(bootstrap, within_s) as connection:
            response = answered(connection, request)
    except TimeoutError:
        raise NoAnswer(
            f"the broker asked, of {bootstrap}, gives no answer within {within_s:g} s.", STATE_HINT
        ) from None
    except DecodeError as error:
        raise Failed(f"the answer of the broker at {bootstrap} is not Kafka's: {error}.") from None
    except (OSError, EOFError):
        # What a broker does with a request for the controller when there is none.
        raise NoAnswer(
            f"the broker asked, of {bootstrap}, closed the connection: "
            "it may have ended, or the cluster has no controller now.",
            STATE_HINT,
        ) from None
    return response


def ask_again(bootstrap: str, request: Any, doing: str) -> Any:
    """As `ask`, patiently: while the controller changes there may be no answer for some seconds.
    A person hears of it when it takes longer than a moment."""
    until = time.monotonic() + AGAIN_FOR_S
    told = Timer(SILENT_S, note, [f"Waiting for a controller, {AGAIN_FOR_S:g} s at most ..."])
    told.start()
    try:
        while True:
            try:
                response = ask(bootstrap, request, max(until - time.monotonic(), LAST_TRY_S))
            except Failed as failure:
                if time.monotonic() > until:
                    raise given_up(failure, doing) from None
            else:
                code = response.error_code
                if code == ErrorCode.none:
                    return response
                if code not in PASSING or time.monotonic() > until:
                    raise refusal(doing, code, response.error_message)
            time.sleep(AGAIN_PAUSE_S)
    finally:
        told.cancel()


def given_up(failure: Failed, doing: str) -> Failed:
    """The end of the patience: silence means the controller's, whichever broker was asked."""
    if not isinstance(failure, NoAnswer):
        return failure
    return Failed(f"cannot {doing}: no controller has answered for {AGAIN_FOR_S:g} s.", STATE_HINT)


def refusal(doing: str, code: Any, message: str | None) -> Failed:
    """A broker's error as a sentence."""
    reason = message or code.name.replace("_", " ")
    return Failed(f"cannot {doing}: {reason if reason.endswith('.') else reason + '.'}")


def any_brokers_view(bootstrap: str) -> Any | None:
    """What the first broker that answers knows of the cluster: a DescribeCluster response
    (KIP-700). None where nobody answers it over a plain connection."""
    build = messages_of(DESCRIBE_CLUSTER, 0, "request")
    request = build.DescribeClusterRequest(include_cluster_authorized_operations=False)
    try:
        response = ask(bootstrap, request, VIEW_WITHIN_S)
    except Failed:
        return None
    return response if response.error_code == ErrorCode.none else None


def controller_epoch(bootstrap: str) -> int | None:
    """Which controller since the cluster's beginning this is, or None where nobody tells.

    Standard requests do not have it; DescribeQuorum (KIP-595) tells the epoch of whoever decides
    on metadata, which in ZooKeeper's tree is /controller_epoch.
    """
    build = messages_of(DESCRIBE_QUORUM, 0, "request")
    partition = build.PartitionData(partition_index=0)
    topic = build.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    try:
        response = ask(bootstrap, build.DescribeQuorumRequest(topics=(topic,)))
    except Failed:
        return None
    for found in response.topics:
        for each in found.partitions:
            if each.error_code == ErrorCode.none:
                return int(each.leader_epoch)
    return None


def reassign(bootstrap: str, targets: Assignments) -> None:
    """Ask for other replicas (KIP-455); raises Failed with the first refusal."""
    build = messages_of(ALTER_PARTITION_REASSIGNMENTS, 0, "request")
    topics = tuple(
        build.ReassignableTopic(
            name=name,
            partitions=tuple(
                build.ReassignablePartition(partition_index=index, replicas=tuple(replicas))
                for index, replicas in partitions.items()
            ),
        )
        for name, partitions in targets.items()
    )
    request = build.AlterPartitionReassignmentsRequest(timeout=ANSWER_TIMEOUT_MS, topics=topics)
    response = ask_again(bootstrap, request, "move partitions")
    for topic in response.responses:
        for each in topic.partitions:
            if each.error_code != ErrorCode.none:
                place = f"move {topic.name}-{each.partition_index}"
                raise refusal(place, each.error_code, each.error_message)


def reassignments(bootstrap: str) -> dict[Partition, Any]:
    """What is being moved now: `replicas`, `adding_replicas`, `removing_replicas` by partition."""
    build = messages_of(LIST_PARTITION_REASSIGNMENTS, 0, "request")
    request = build.ListPartitionReassignmentsRequest(timeout=ANSWER_TIMEOUT_MS, topics=None)
    response = ask_again(bootstrap, request, "list what is being moved")
    return {
        (topic.name, each.partition_index): each
        for topic in response.topics
        for each in topic.partitions
    }
