"""What an operator does to a simulated cluster: requests to whichever broker answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from simulation.virtual.connection import Connections, NoAnswerError
from simulation.virtual.violation import Violation

CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
ELECT_LEADERS: Final = 43
ALTER_PARTITION_REASSIGNMENTS: Final = 45
TRIES: Final = 200
PAUSE_S: Final = 0.2


class Operator:
    """Each call asks brokers in turn until one answers; what is refused is not tried again."""

    def __init__(
        self,
        addresses: Mapping[int, tuple[str, int]],
        random: Random,
        note: Callable[[str], None],
    ) -> None:
        self._connections = Connections("operator", addresses)
        self._brokers = list(addresses)
        self._random = random
        self._note = note

    async def create(self, topic: str, partitions: int, factor: int) -> None:
        """Create a topic that may be there already. Raises Violation when it never succeeds."""
        build = messages_of(CREATE_TOPICS, 7, "request")
        wanted = build.CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=factor,
            assignments=(),
            configs=(),
        )
        request = build.CreateTopicsRequest(topics=(wanted,), timeout=1_000)
        for _ in range(TRIES):
            answer = await self._ask(request)
            if answer is not None:
                code = ErrorCode(answer.topics[0].error_code)
                if code in (ErrorCode.none, ErrorCode.topic_already_exists):
                    return
            await asyncio.sleep(PAUSE_S)
        raise Violation(f"topic {topic} could not be created")

    async def delete(self, topic: str) -> None:
        """Delete a topic; it may be refused or lost."""
        build = messages_of(DELETE_TOPICS, 5, "request")
        answer = await self._ask(build.DeleteTopicsRequest(topic_names=(topic,), timeout=1_000))
        if answer is not None:
            self._note(
                f"operator: delete {topic}: {ErrorCode(answer.responses[0].error_code).name}"
            )

    async def elect(self, *, unclean: bool = False) -> None:
        """Ask for preferred leaders everywhere, or for any leader where there is none."""
        build = messages_of(ELECT_LEADERS, 2, "request")
        request = build.ElectLeadersRequest(
            election_type=1 if unclean else 0, topic_partitions=None, timeout=1_000
        )
        if await self._ask(request) is not None:
            self._note(f"operator: {'unclean' if unclean else 'preferred'} leaders elected")

    async def reassign(self, topic: str, partition: int, factor: int) -> None:
        """Move a partition to brokers chosen by chance."""
        replicas = tuple(self._random.sample(self._brokers, factor))
        build = messages_of(ALTER_PARTITION_REASSIGNMENTS, 0, "request")
        place = build.ReassignablePartition(partition_index=partition, replicas=replicas)
        wanted = build.ReassignableTopic(name=topic, partitions=(place,))
        request = build.AlterPartitionReassignmentsRequest(topics=(wanted,), timeout=1_000)
        answer = await self._ask(request)
        if answer is not None:
            self._note(
                f"operator: {topic}-{partition} to {replicas}: {ErrorCode(answer.error_code).name}"
            )

    async def _ask(self, request: Any) -> Any:
        for broker in self._random.sample(self._brokers, len(self._brokers)):
            try:
                return await self._connections.ask(broker, request)
            except NoAnswerError:
                continue
        return None
