"""Makes a chosen replica the leader: it becomes the preferred one (a reassignment to the same
brokers in another order, KIP-455), and the preferred replica is elected (KIP-460).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.testing.broker_request import ask_broker
from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

_ELECT, _REASSIGN = 43, 45
_PREFERRED: Final = 0
_TIMEOUT_MS: Final = 10_000
_POLL_S: Final = 0.05
_AGAIN: Final = (ErrorCode.preferred_leader_not_available, ErrorCode.not_controller)
_DONE: Final = (ErrorCode.none, ErrorCode.election_not_needed)


def elect(
    address: str, topic: str, partition: int, replicas: Sequence[int], timeout_s: float
) -> None:
    """The first of `replicas`, which are the partition's, becomes its leader. Raises KitError with
    the controller's reason, also if the replica is not in sync within `timeout_s`.
    """
    _prefer(address, topic, partition, replicas)
    until = time.monotonic() + timeout_s
    while (code := _elect(address, topic, partition)) not in _DONE:
        if code not in _AGAIN or time.monotonic() > until:
            raise KitError(f"no election of {topic}-{partition}: {code.name.upper()}")
        time.sleep(_POLL_S)


def _prefer(address: str, topic: str, partition: int, replicas: Sequence[int]) -> None:
    build = messages_of(_REASSIGN, 0, "request")
    wanted = build.ReassignablePartition(partition_index=partition, replicas=tuple(replicas))
    of_topic = build.ReassignableTopic(name=topic, partitions=(wanted,))
    response: Any = ask_broker(
        address,
        build.AlterPartitionReassignmentsRequest(timeout=_TIMEOUT_MS, topics=(of_topic,)),
    )
    code = response.error_code
    if code is ErrorCode.none:
        code = response.responses[0].partitions[0].error_code
    if code is not ErrorCode.none:
        raise KitError(f"cannot reorder the replicas of {topic}-{partition}: {code.name.upper()}")


def _elect(address: str, topic: str, partition: int) -> ErrorCode:
    build = messages_of(_ELECT, 2, "request")
    wanted = build.TopicPartitions(topic=topic, partitions=(partition,))
    response: Any = ask_broker(
        address,
        build.ElectLeadersRequest(
            election_type=_PREFERRED, topic_partitions=(wanted,), timeout=_TIMEOUT_MS
        ),
    )
    if response.error_code is not ErrorCode.none:
        return ErrorCode(response.error_code)
    return ErrorCode(response.replica_election_results[0].partition_result[0].error_code)
