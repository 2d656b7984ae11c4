"""AlterPartitionReassignments (key 45): other replicas for partitions (KIP-455).

v1 (KIP-860): the replication factor may be kept. With one broker there is one assignment, the
one that is. Asking for it is granted, anything else names a broker that is not there.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.broker.call import Call
from ottla.protocol.errors import ErrorCode

KEY: Final = 45


async def handle(request: Any, call: Call) -> Any:
    build = call.messages
    topics = []
    for topic in request.topics:
        answers = []
        for each in topic.partitions:
            code, message = _decide(topic.name, each, call)
            answers.append(
                build.ReassignablePartitionResponse(
                    partition_index=each.partition_index, error_code=code, error_message=message
                )
            )
        topics.append(build.ReassignableTopicResponse(name=topic.name, partitions=tuple(answers)))
    return build.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=getattr(request, "allow_replication_factor_change", True),
        responses=tuple(topics),
    )


def _decide(topic: str, each: Any, call: Call) -> tuple[ErrorCode, str | None]:
    state = call.node.image.partition(topic, each.partition_index)
    if state is None:
        return ErrorCode.unknown_topic_or_partition, "The topic or partition does not exist."
    if each.replicas is None:
        return ErrorCode.no_reassignment_in_progress, "There is no reassignment to cancel."
    if not each.replicas or len(set(each.replicas)) < len(each.replicas):
        return ErrorCode.invalid_replica_assignment, "Replicas must be one or more, each once."
    missing = sorted(set(each.replicas) - set(call.node.image.brokers))
    if missing:
        return ErrorCode.invalid_replica_assignment, f"Brokers {missing} are not there."
    return ErrorCode.none, None
