"""ListPartitionReassignments (key 46): reassignments under way (KIP-455)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.reassignment import list_reassignments
from ottla.protocol.access import Access, Operation, Resource
from ottla.runtime.slices import Slices, in_turns

KEY: Final = 46
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.CLUSTER),)


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    wanted: dict[str, Sequence[int]] | None = None
    if request.topics is not None:
        wanted = {}
        for topic in request.topics:
            await slices.count()
            wanted[topic.name] = topic.partition_indexes
    answers = []
    found = await in_turns(list_reassignments(wanted, context.broker.image))
    for name, states in found.items():
        await slices.count()
        partitions = []
        for index, state in states.items():
            await slices.count()
            partitions.append(
                build.OngoingPartitionReassignment(
                    partition_index=index,
                    replicas=state.replicas,
                    adding_replicas=state.adding,
                    removing_replicas=state.removing,
                )
            )
        answers.append(build.OngoingTopicReassignment(name=name, partitions=tuple(partitions)))
    return build.ListPartitionReassignmentsResponse(topics=tuple(answers))
