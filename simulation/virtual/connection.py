"""A simulated client's connections: requests to brokers by number, answers or NoAnswerError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ottla.network.peer import Peer, PeerError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

METADATA: Final = 3

REQUEST_TIMEOUT_MS: Final = 3_000
MAX_FRAME_BYTES: Final = 64 << 20
_METADATA_VERSION: Final = 9


class NoAnswerError(Exception):
    """No broker answered, or nobody knows where to ask; the text says why."""


class Connections:
    """One client's connections, and what it knows of the cluster."""

    def __init__(self, client_id: str, addresses: Mapping[int, tuple[str, int]]) -> None:
        self.leaders: dict[tuple[str, int], int] = {}
        self._peers = {
            number: Peer(
                f"broker {number}",
                lambda number=number: addresses[number],  # type: ignore[misc]
                client_id,
                max_frame_bytes=MAX_FRAME_BYTES,
            )
            for number in addresses
        }

    async def ask(self, broker: int, request: Any, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Any:
        """Raises NoAnswerError."""
        try:
            return await self._peers[broker].ask(request, timeout_ms)
        except PeerError as error:
            raise NoAnswerError(str(error)) from None

    async def leader(self, topic: str, partition: int) -> int:
        """The partition's leader, from the brokers' metadata. Raises NoAnswerError."""
        found = self.leaders.get((topic, partition))
        if found is None:
            await self._refresh(topic)
            found = self.leaders.get((topic, partition))
        if found is None:
            raise NoAnswerError(f"{topic}-{partition} has no leader")
        return found

    def forget_leader(self, topic: str, partition: int) -> None:
        """The leader refused or did not answer: ask for it again."""
        self.leaders.pop((topic, partition), None)

    async def _refresh(self, topic: str) -> None:
        build = messages_of(METADATA, _METADATA_VERSION, "request")
        topics = (build.MetadataRequestTopic(name=topic),)
        request = build.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        failure = "nobody asked"
        for broker in self._peers:
            try:
                answer = await self.ask(broker, request, 500)
            except NoAnswerError as error:
                failure = str(error)
                continue
            for partition in answer.topics[0].partitions:
                if partition.error_code == ErrorCode.none:
                    place = (topic, partition.partition_index)
                    self.leaders[place] = partition.leader_id
            return
        raise NoAnswerError(failure)
