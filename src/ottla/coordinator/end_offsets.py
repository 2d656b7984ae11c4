"""The end of partitions, as their leaders say it: for the lag of groups that commit no offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of

LIST_OFFSETS: Final = 2
VERSION: Final = 7
LATEST: Final = -1
CONSUMER: Final = -1
"""As replica id: up to the high watermark."""


class EndOffsets:
    """Asks the leaders, each once for all its partitions."""

    def __init__(
        self,
        leader_of: Callable[[str, int], int | None],
        ask: Callable[[int, Any], Awaitable[Any]],
    ) -> None:
        """`ask` sends a request to a broker, maybe this one; raises PeerError."""
        self._leader_of = leader_of
        self._ask = ask

    async def of(
        self, partitions: Iterable[tuple[str, int]]
    ) -> dict[tuple[str, int], int | ApiError]:
        """The end of each of these partitions, or why it is not known."""
        found: dict[tuple[str, int], int | ApiError] = {}
        by_leader: dict[int, dict[str, list[int]]] = {}
        for name, partition in partitions:
            leader = self._leader_of(name, partition)
            if leader is None:
                found[name, partition] = ApiError(ErrorCode.leader_not_available)
            else:
                by_leader.setdefault(leader, {}).setdefault(name, []).append(partition)
        asked = [self._of_leader(leader, topics) for leader, topics in by_leader.items()]
        for those in await asyncio.gather(*asked):
            found |= those
        return found

    async def _of_leader(
        self, leader: int, topics: dict[str, list[int]]
    ) -> dict[tuple[str, int], int | ApiError]:
        build = messages_of(LIST_OFFSETS, VERSION, "request")
        request = build.ListOffsetsRequest(
            replica_id=CONSUMER,
            topics=tuple(
                build.ListOffsetsTopic(
                    name=name,
                    partitions=tuple(
                        build.ListOffsetsPartition(partition_index=each, timestamp=LATEST)
                        for each in partitions
                    ),
                )
                for name, partitions in topics.items()
            ),
        )
        try:
            response = await self._ask(leader, request)
        except PeerError as error:
            failed = ApiError(ErrorCode.network_exception, str(error))
            return {(name, each): failed for name, those in topics.items() for each in those}
        return {
            (topic.name, each.partition_index): each.offset
            if each.error_code is ErrorCode.none
            else ApiError(each.error_code)
            for topic in response.topics
            for each in topic.partitions
        }
