"""ElectLeaders (key 43): elects the leaders that partitions should have (KIP-183).

v1: unclean elections, and an error for the whole response (KIP-460). v2: flexible. On a single
broker every partition has its only leader, so the right answer is ELECTION_NOT_NEEDED.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.elections import ElectionType
from ottla.controller.plan import Outcome
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import Slices

KEY: Final = 43
ACCESS: Final = (Access(Operation.ALTER, Resource.CLUSTER),)

_ELECTION_TYPE: Final = VersionedField[int](
    KEY, "ElectLeadersRequest", "election_type", ElectionType.PREFERRED
)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    number = _ELECTION_TYPE(request)
    if number not in tuple(ElectionType):
        return build.ElectLeadersResponse(error_code=ErrorCode.invalid_request)
    wanted: dict[str, list[int]] | None = None
    slices = Slices()
    if request.topic_partitions is not None:
        wanted = {}
        for topic in request.topic_partitions:
            await slices.count()
            wanted.setdefault(topic.topic, []).extend(topic.partitions)
    try:
        reply = await context.broker.controller.elect_leaders(ElectionType(number), wanted)
    except ApiError as error:
        return build.ElectLeadersResponse(error_code=error.code)
    answers = []
    for name, outcomes in reply.items():
        await slices.count()
        partitions = []
        for partition, outcome in outcomes.items():
            await slices.count()
            partitions.append(_answer(partition, outcome, context))
        answers.append(build.ReplicaElectionResult(topic=name, partition_result=tuple(partitions)))
    return build.ElectLeadersResponse(replica_election_results=tuple(answers))


def _answer(partition: int, outcome: Outcome, context: Context) -> Any:
    return context.messages.PartitionResult(
        partition_id=partition, error_code=outcome.code, error_message=outcome.message
    )
