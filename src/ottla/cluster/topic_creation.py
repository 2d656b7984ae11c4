"""Creates topics that a client needs: auto-created ones, internal ones, and those of streams
groups.

As in Kafka, the first request that needs an internal topic creates it. While it cannot be created,
clients get COORDINATOR_NOT_AVAILABLE and retry without end. So the broker logs the reason, and the
response contains it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from ottla.cluster.controller_client import ControllerClient
from ottla.cluster.streams_topics import StreamsTopics
from ottla.config.broker import BrokerConfig
from ottla.controller.image import ClusterImage
from ottla.controller.plan import DONE, Outcome
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode
from ottla.protocol.internal_topics import (
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    SHARE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from ottla.runtime.clock import Clock
from ottla.runtime.slices import Slices

logger = logging.getLogger("ottla.cluster")

MIN_SEGMENT_BYTES: Final = 1_048_576
LOG_PAUSE_MS: Final = 60_000
"""Between two log lines about an internal topic that cannot be created: clients keep retrying."""


class TopicCreation:
    """Creates topics through the controller."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        image: ClusterImage,
        client: ControllerClient,
    ) -> None:
        self._config = config
        self._clock = clock
        self._image = image
        self._client = client
        self._logged_ms: dict[str, int] = {}
        """When the broker last logged why an internal topic cannot be created."""
        self.streams = StreamsTopics(clock, client.create_missing_topics)
        """The internal topics of streams groups."""

    def close(self) -> None:
        """Nothing is created any more."""
        self.streams.close()

    async def auto_create(self, names: Sequence[str]) -> dict[str, Outcome]:
        """Creates topics whose metadata a client requested; an existing topic is not an error.

        KRaft's topic is not requested: to its client it is an unknown one, as in Apache Kafka.
        """
        slices = Slices()
        requested: dict[str, NewTopic] = {}
        for name in names:
            await slices.count()
            if name != METADATA_TOPIC and name not in requested:
                requested[name] = _auto_topic(name, self._config)
        return (
            await self._client.create_missing_topics(list(requested.values())) if requested else {}
        )

    async def ensure_offsets_topic(self) -> Outcome:
        """Creates __consumer_offsets unless it exists. The message of a failure says what to do."""
        return await self._ensure(
            OFFSETS_TOPIC, "Consumer groups", "offsets.topic.replication.factor"
        )

    async def ensure_transactions_topic(self) -> Outcome:
        """The same for __transaction_state."""
        return await self._ensure(
            TRANSACTIONS_TOPIC, "Transactions", "transaction.state.log.replication.factor"
        )

    async def ensure_share_topic(self) -> Outcome:
        """The same for __share_group_state."""
        return await self._ensure(
            SHARE_TOPIC, "Share groups", "share.coordinator.state.topic.replication.factor"
        )

    async def _ensure(self, topic: str, users: str, factor_setting: str) -> Outcome:
        if topic in self._image.topics:
            return DONE
        outcome = (await self.auto_create([topic]))[topic]
        if not outcome.failed:
            return outcome
        reason = self._why_not_created(outcome, topic, users, factor_setting)
        now_ms = self._clock.monotonic_ms()
        logged_ms = self._logged_ms.get(topic)
        if logged_ms is None or now_ms - logged_ms >= LOG_PAUSE_MS:
            self._logged_ms[topic] = now_ms
            logger.warning("%s", reason)
        return outcome._replace(message=reason)

    def _why_not_created(
        self, outcome: Outcome, topic: str, users: str, factor_setting: str
    ) -> str:
        reason = (outcome.message or outcome.code.name.replace("_", " ")).rstrip(".")
        text = f"{users} are not available: cannot create {topic}: {reason}."
        if outcome.code is not ErrorCode.invalid_replication_factor:
            return text
        running = ", ".join(map(str, sorted(self._image.brokers))) or "none"
        return (
            f"{text} Registered brokers: {running}. Start another broker, or start the brokers "
            f"with a lower {factor_setting}."
        )


def _auto_topic(name: str, config: BrokerConfig) -> NewTopic:
    if name == OFFSETS_TOPIC:
        return NewTopic(
            name,
            config.offsets_topic_num_partitions,
            config.offsets_topic_replication_factor,
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                _segment_bytes(config.offsets_topic_segment_bytes),
            ),
        )
    if name == TRANSACTIONS_TOPIC:
        return NewTopic(
            name,
            config.transaction_state_log_num_partitions,
            config.transaction_state_log_replication_factor,
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "uncompressed"),
                ("min.insync.replicas", str(config.transaction_state_log_min_isr)),
                ("unclean.leader.election.enable", "false"),
                _segment_bytes(config.transaction_state_log_segment_bytes),
            ),
        )
    if name == SHARE_TOPIC:
        return NewTopic(
            name,
            config.share_coordinator_state_topic_num_partitions,
            config.share_coordinator_state_topic_replication_factor,
            configs=(
                ("cleanup.policy", "delete"),
                ("compression.type", "producer"),
                ("min.insync.replicas", str(config.share_coordinator_state_topic_min_isr)),
                ("retention.ms", "-1"),
                _segment_bytes(config.share_coordinator_state_topic_segment_bytes),
            ),
        )
    return NewTopic(name)


def _segment_bytes(size_bytes: int) -> tuple[str, str]:
    bounded = size_bytes >= MIN_SEGMENT_BYTES
    return "segment.bytes" if bounded else "internal.segment.bytes", str(size_bytes)
