"""Requests for which librdkafka has no call: reassignments, elections (librdkafka has a call, but
that of confluent-kafka 2.16 raises SystemError), the controller's epoch, and a broker's own view of
the cluster (librdkafka asks only the controller).

Each request uses a new plain connection to the first broker that accepts one. Any broker forwards
requests to the controller, and a new connection works even if the last broker has stopped.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from threading import Timer
from typing import Any, Final

from ottla.cli.failures import Failed
from ottla.cli.plain_connection import connected
from ottla.cli.plain_frames import answered
from ottla.cli.plain_security import NONE, Security
from ottla.cli.screen import note
from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.messages import messages_of

ELECT_LEADERS: Final = 43
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


def ask_again(bootstrap: str, request: Any, doing: str, security: Security = NONE) -> Any:
    """As `ask`, but retries: while the controller changes, responses may fail for some seconds.

    Tells the user when it takes longer than a moment.
    """
    until = time.monotonic() + AGAIN_FOR_S
    notice = Timer(SILENT_S, note, [f"Waiting up to {AGAIN_FOR_S:g} s for a controller ..."])
    notice.start()
    try:
        while True:
            try:
                within_s = max(until - time.monotonic(), LAST_TRY_S)
                response = ask(bootstrap, request, within_s, security)
            except Failed as failure:
                if time.monotonic() > until:
                    raise given_up(failure, doing) from None
            else:
                code = response.error_code
                if code == ErrorCode.none:
                    return response
                if code not in PASSING or time.monotonic() > until:
                    raise refusal(doing, code, getattr(response, "error_message", None))
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
    return Failed(f"cannot {doing}: {reason_of(code, message)}.")


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


def reassign(bootstrap: str, targets: Assignments, security: Security = NONE) -> None:
    """Request other replicas (KIP-455). Raises Failed with the first error."""
    alter_reassignments(bootstrap, targets, "move", security)


def cancel_reassignments(
    bootstrap: str, places: Iterable[Partition], security: Security = NONE
) -> None:
    """Give up the replicas that are being added. Raises Failed with the first error; a move that
    has ended meanwhile is none.
    """
    targets: dict[str, dict[int, None]] = {}
    for topic, index in places:
        targets.setdefault(topic, {})[index] = None
    alter_reassignments(bootstrap, targets, "cancel the move of", security)


def alter_reassignments(
    bootstrap: str,
    targets: Mapping[str, Mapping[int, Sequence[int] | None]],
    doing: str,
    security: Security,
) -> None:
    """AlterPartitionReassignments; no replicas cancel a move. Raises Failed."""
    build = messages_of(ALTER_PARTITION_REASSIGNMENTS, 0, "request")
    topics = tuple(
        build.ReassignableTopic(
            name=name,
            partitions=tuple(
                build.ReassignablePartition(
                    partition_index=index, replicas=None if replicas is None else tuple(replicas)
                )
                for index, replicas in partitions.items()
            ),
        )
        for name, partitions in targets.items()
    )
    request = build.AlterPartitionReassignmentsRequest(timeout=ANSWER_TIMEOUT_MS, topics=topics)
    response = ask_again(bootstrap, request, f"{doing} partitions", security)
    for topic in response.responses:
        for each in topic.partitions:
            if each.error_code not in (ErrorCode.none, ErrorCode.no_reassignment_in_progress):
                place = f"{doing} {topic.name}-{each.partition_index}"
                raise refusal(place, each.error_code, each.error_message)


def reassignments(bootstrap: str, security: Security = NONE) -> dict[Partition, Any]:
    """Ongoing reassignments: `replicas`, `adding_replicas`, `removing_replicas` by partition."""
    build = messages_of(LIST_PARTITION_REASSIGNMENTS, 0, "request")
    request = build.ListPartitionReassignmentsRequest(timeout=ANSWER_TIMEOUT_MS, topics=None)
    response = ask_again(bootstrap, request, "list the ongoing reassignments", security)
    return {
        (topic.name, each.partition_index): each
        for topic in response.topics
        for each in topic.partitions
    }


def elect_leaders(
    bootstrap: str, places: Iterable[Partition], *, unclean: bool, security: Security = NONE
) -> dict[Partition, str]:
    """ElectLeaders (KIP-460): preferred leaders, or `unclean` ones. Returns the reason for each
    partition whose election failed. Raises Failed.
    """
    build = messages_of(ELECT_LEADERS, 2, "request")
    topics: dict[str, list[int]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append(index)
    request = build.ElectLeadersRequest(
        election_type=int(unclean),
        topic_partitions=tuple(
            build.TopicPartitions(topic=topic, partitions=tuple(indexes))
            for topic, indexes in topics.items()
        ),
        timeout=ANSWER_TIMEOUT_MS,
    )
    response = ask_again(bootstrap, request, "elect leaders", security)
    return {
        (found.topic, each.partition_id): reason_of(each.error_code, each.error_message)
        for found in response.replica_election_results
        for each in found.partition_result
        # Not needed: the partition got its leader in the meantime.
        if each.error_code not in (ErrorCode.none, ErrorCode.election_not_needed)
    }


def reason_of(code: Any, message: str | None) -> str:
    """A broker's error as part of a sentence."""
    return (message or str(code.name).replace("_", " ")).rstrip(".")
