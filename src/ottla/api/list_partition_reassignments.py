"""ListPartitionReassignments (key 46): reassignments under way (KIP-455)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.reassignment import list_reassignments
from ottla.protocol.access import Access, Operation, Resource

KEY: Final = 46
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.CLUSTER),)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    wanted: dict[str, Sequence[int]] | None = None
    if request.topics is not None:
        wanted = {topic.name: topic.partition_indexes for topic in request.topics}
    found = list_reassignments(wanted, context.broker.image)
    return build.ListPartitionReassignmentsResponse(
        topics=tuple(
            build.OngoingTopicReassignment(
                name=name,
                partitions=tuple(
                    build.OngoingPartitionReassignment(
                        partition_index=index,
                        replicas=state.replicas,
                        adding_replicas=state.adding,
                        removing_replicas=state.removing,
                    )
                    for index, state in partitions.items()
                ),
            )
            for name, partitions in found.items()
        )
    )
