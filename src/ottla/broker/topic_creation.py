"""Topics that come into being because somebody needs them: auto-created ones, and our own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ottla.broker.controller_client import create_missing_topics
from ottla.config.broker import BrokerConfig
from ottla.controller.plan import DONE, Outcome
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from ottla.broker.node import Node

SEGMENT_BYTES_MIN: Final = 1_048_576


class TopicCreation:
    """Has the controller create topics."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def auto_create(self, names: Sequence[str]) -> dict[str, Outcome]:
        """Makes topics that a client asked the metadata of; one that exists by now is fine."""
        wanted = [_auto_topic(name, self._node.config) for name in dict.fromkeys(names)]
        outcomes = {name: Outcome(ErrorCode.unknown_topic_or_partition) for name in names}
        allowed = [topic for topic in wanted if topic is not None]
        if allowed:
            outcomes.update(await create_missing_topics(self._node, allowed))
        return outcomes

    async def ensure_offsets_topic(self) -> Outcome:
        """Makes __consumer_offsets unless it exists."""
        if OFFSETS_TOPIC in self._node.image.topics:
            return DONE
        return (await self.auto_create([OFFSETS_TOPIC]))[OFFSETS_TOPIC]


def _auto_topic(name: str, config: BrokerConfig) -> NewTopic | None:
    if name == TRANSACTIONS_TOPIC:
        return None
    if name != OFFSETS_TOPIC:
        return NewTopic(name)
    segment_bytes = config.offsets_topic_segment_bytes
    bounded = segment_bytes >= SEGMENT_BYTES_MIN
    return NewTopic(
        name,
        config.offsets_topic_num_partitions,
        config.offsets_topic_replication_factor,
        configs=(
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes" if bounded else "internal.segment.bytes", str(segment_bytes)),
        ),
    )
