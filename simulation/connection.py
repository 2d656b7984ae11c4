"""A simulated client's connections: requests to brokers by id; a response or NoAnswerError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ottla.network.peer import Peer, PeerError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

METADATA: Final = 3
FIND_COORDINATOR: Final = 10

GROUP: Final = 0
TRANSACTION: Final = 1
"""What a coordinator can be asked for, as numbered in FindCoordinator."""
REQUEST_TIMEOUT_MS: Final = 3_000
RETRY_S: Final = 0.1
MAX_FRAME_BYTES: Final = 64 << 20
_METADATA_VERSION: Final = 9


class NoAnswerError(Exception):
    """No broker responded, or the right broker is unknown; the message says why."""


class RefusedError(Exception):
    """A coordinator or a leader returned an error after which the client begins again."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class Connections:
    """One client's connections and its cached metadata."""

    def __init__(self, client_id: str, addresses: Mapping[int, tuple[str, int]]) -> None:
        self.leaders: dict[tuple[str, int], tuple[int, int]] = {}
        """By topic and partition: the leader and its epoch."""
        self._last_epochs: dict[tuple[str, int], int] = {}
        """By topic and partition: the newest leader epoch that the client has heard of."""
        self.coordinators: dict[tuple[str, int], int] = {}
        """By group or transactional id, and kind."""
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
        return (await self.leader_and_epoch(topic, partition))[0]

    async def leader_and_epoch(self, topic: str, partition: int) -> tuple[int, int]:
        """The leader and its epoch, which consumers send (KIP-320). Raises NoAnswerError."""
        if (topic, partition) not in self.leaders:
            await self._refresh(topic, partition)
        return self.leaders[topic, partition]

    def epoch_seen(self, topic: str, partition: int, epoch: int) -> None:
        """A committed offset names this leader epoch: a leader of an earlier one is not asked
        (KIP-320). -1 names none."""
        partition_key = topic, partition
        self._last_epochs[partition_key] = max(epoch, self._last_epochs.get(partition_key, -1))
        if partition_key in self.leaders and self.leaders[partition_key][1] < epoch:
            del self.leaders[partition_key]

    def forget_leader(self, topic: str, partition: int) -> None:
        """The leader returned an error or no response: look it up again."""
        self.leaders.pop((topic, partition), None)

    def forget_topic(self, topic: str) -> None:
        """It was deleted: another one of its name begins with the first leader epochs again."""
        for known in (self.leaders, self._last_epochs):
            for partition_key in [each for each in known if each[0] == topic]:
                del known[partition_key]

    async def coordinator(self, key: str, kind: int = GROUP) -> int:
        """The coordinator of a group or transactional id. Raises NoAnswerError."""
        found = self.coordinators.get((key, kind))
        if found is not None:
            return found
        build = messages_of(FIND_COORDINATOR, 3, "request")
        request = build.FindCoordinatorRequest(key=key, key_type=kind)
        failure = "nobody asked"
        for broker in self._peers:
            try:
                answer = await self.ask(broker, request, 1_000)
            except NoAnswerError as error:
                failure = str(error)
                continue
            if ErrorCode(answer.error_code) is ErrorCode.none:
                self.coordinators[key, kind] = answer.node_id
                return int(answer.node_id)
            failure = ErrorCode(answer.error_code).name
        raise NoAnswerError(f"{key} has no coordinator: {failure}")

    def forget_coordinator(self, key: str, kind: int = GROUP) -> None:
        """The coordinator returned an error or no response: look it up again."""
        self.coordinators.pop((key, kind), None)

    async def _refresh(self, topic: str, partition: int) -> None:
        """Ask the brokers in turn for metadata, until one knows a leader that is not outdated.

        Raises NoAnswerError if none does.
        """
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
            for each in answer.topics[0].partitions:
                if each.error_code == ErrorCode.none:
                    self._take(topic, each)
            if (topic, partition) in self.leaders:
                return
            failure = f"broker {broker} knows no leader of {topic}-{partition}, or a former one"
        raise NoAnswerError(failure)

    def _take(self, topic: str, partition: Any) -> None:
        """Keep a partition's leader, unless the client has heard of a newer epoch (KIP-320)."""
        partition_key = topic, partition.partition_index
        if partition.leader_epoch >= self._last_epochs.get(partition_key, -1):
            self._last_epochs[partition_key] = partition.leader_epoch
            self.leaders[partition_key] = partition.leader_id, partition.leader_epoch
