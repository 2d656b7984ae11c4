"""AlterPartitionReassignments (key 45): moves partitions to other replicas (KIP-455).

v1 (KIP-860): the request can forbid a change of the replication factor.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.plan import DONE
from ottla.controller.reassignment import Target
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import Slices

KEY: Final = 45
ACCESS: Final = (Access(Operation.ALTER, Resource.CLUSTER),)

_ALLOW_REPLICATION_FACTOR_CHANGE: Final = VersionedField(
    KEY, "AlterPartitionReassignmentsRequest", "allow_replication_factor_change", True
)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    allowed = _ALLOW_REPLICATION_FACTOR_CHANGE(request)
    wanted: dict[str, dict[int, Target]] = {}
    slices = Slices()
    for topic in request.topics:
        await slices.count()
        targets = wanted.setdefault(topic.name, {})
        for each in topic.partitions:
            await slices.count()
            targets[each.partition_index] = None if each.replicas is None else tuple(each.replicas)
    try:
        reply = await context.broker.controller.alter_reassignments(
            wanted, allow_factor_change=allowed
        )
    except ApiError as error:
        return build.AlterPartitionReassignmentsResponse(
            error_code=error.code,
            error_message=error.message,
            allow_replication_factor_change=allowed,
        )
    answers = []
    for name, outcomes in reply.items():
        await slices.count()
        partitions = []
        for index, outcome in outcomes.items():
            await slices.count()
            partitions.append(
                build.ReassignablePartitionResponse(
                    partition_index=index,
                    error_code=outcome.code,
                    error_message=outcome.message,
                )
            )
        answers.append(build.ReassignableTopicResponse(name=name, partitions=tuple(partitions)))
    return build.AlterPartitionReassignmentsResponse(
        error_message=DONE.message,
        allow_replication_factor_change=allowed,
        responses=tuple(answers),
    )
