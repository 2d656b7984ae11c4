"""Requests for which librdkafka has no call: reassignments, the controller's epoch, and a broker's
own view of the cluster (librdkafka asks only the controller).

Each request uses a new plain connection to the first broker that accepts one. Any broker forwards
requests to the controller, and a new connection works even if the last broker has stopped.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from threading import Timer
from typing import Any, Final

from ottla.cli.failures import Failed
from ottla.cli.plain_connection import connected
from ottla.cli.plain_frames import answered
from ottla.cli.plain_security import NONE, Security
from ottla.cli.screen import note
from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.messages import messages_of

ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
DESCRIBE_QUORUM: Final = 55
DESCRIBE_CLUSTER: Final = 60
METADATA_TOPIC: Final = "__cluster_metadata"
ANSWER_WITHIN_S: Final = 30.0
ANSWER_TIMEOUT_MS: Final = 25_000
AGAIN_FOR_S: Final = 30.0
"""How long to wait for a controller: an election takes up to one ZooKeeper session timeout."""
AGAIN_PAUSE_S: Final = 0.5
LAST_TRY_S: Final = 1.0
VIEW_WITHIN_S: Final = 5.0
SILENT_S: Final = 2.0
"""After this long, the user is told what the command waits for."""
STATE_HINT: Final = "To see the cluster's state: ottla cluster describe"
# The controller is changing; a retry will succeed soon.
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


class NoAnswer(Failed):
    """The broker did not respond, or closed the connection."""


def ask(
    bootstrap: str, request: Any, within_s: float = ANSWER_WITHIN_S, security: Security = NONE
) -> Any:
    """The response to a request message of kio's. Raises Failed, or NoAnswer if there is none."""
    try:
        with connected(bootstrap, within_s, security) as connection:
            response = answered(connection, request)
    except TimeoutError:
        raise NoAnswer(f"no response from {bootstrap} within {within_s:g} s.", STATE_HINT) from None
    except DecodeError as error:
        raise Failed(f"the response from {bootstrap} is not a Kafka response: {error}.") from None
    except (OSError, EOFError):
        # Brokers do this with a request for the controller when there is none.
        raise NoAnswer(
            f"the broker at {bootstrap} closed the connection: "
            "it may have stopped, or the cluster has no controller.",
            STATE_HINT,
        ) from None
    return response


def ask_again(bootstrap: str, request: Any, doing: str) -> Any:
    """As `ask`, but retries: while the controller changes, responses may fail for some seconds.

    Tells the user when it takes longer than a moment.
    """
    until = time.monotonic() + AGAIN_FOR_S
    notice = Timer(SILENT_S, note, [f"Waiting up to {AGAIN_FOR_S:g} s for a controller ..."])
    notice.start()
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
        notice.cancel()


def given_up(failure: Failed, doing: str) -> Failed:
    """All retries failed: whichever broker was asked, it is the controller that does not
    respond.
    """
    if not isinstance(failure, NoAnswer):
        return failure
    return Failed(
        f"cannot {doing}: no response from a controller within {AGAIN_FOR_S:g} s.", STATE_HINT
    )


def refusal(doing: str, code: Any, message: str | None) -> Failed:
    """A broker's error as a message."""
    reason = message or code.name.replace("_", " ")
    return Failed(f"cannot {doing}: {reason if reason.endswith('.') else reason + '.'}")


def any_brokers_view(bootstrap: str) -> Any | None:
    """The DescribeCluster response (KIP-700) of the first broker that responds, from its own
    metadata.

    None if no broker responds on a plain connection.
    """
    build = messages_of(DESCRIBE_CLUSTER, 0, "request")
    request = build.DescribeClusterRequest(include_cluster_authorized_operations=False)
    try:
        response = ask(bootstrap, request, VIEW_WITHIN_S)
    except Failed:
        return None
    return response if response.error_code == ErrorCode.none else None


def controller_epoch(bootstrap: str) -> int | None:
    """The controller's epoch, or None if no broker reports it.

    No request of ZooKeeper mode returns it. DescribeQuorum (KIP-595) returns the epoch of the
    metadata quorum's leader; Ottla answers it with the value of /controller_epoch.
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
    """Request other replicas (KIP-455). Raises Failed with the first error."""
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
    """Ongoing reassignments: `replicas`, `adding_replicas`, `removing_replicas` by partition."""
    build = messages_of(LIST_PARTITION_REASSIGNMENTS, 0, "request")
    request = build.ListPartitionReassignmentsRequest(timeout=ANSWER_TIMEOUT_MS, topics=None)
    response = ask_again(bootstrap, request, "list the ongoing reassignments")
    return {
        (topic.name, each.partition_index): each
        for topic in response.topics
        for each in topic.partitions
    }
