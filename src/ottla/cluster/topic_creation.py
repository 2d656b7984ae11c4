"""Creates topics that a client needs: auto-created ones, and internal ones.

As in Kafka, the first request that needs an internal topic creates it. While it cannot be created,
clients get COORDINATOR_NOT_AVAILABLE and retry without end. So the broker logs the reason, and the
response contains it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from ottla.cluster.controller_client import ControllerClient
from ottla.config.broker import BrokerConfig
from ottla.controller.image import ClusterImage
from ottla.controller.plan import DONE, Outcome
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.runtime.clock import Clock

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
        self._logged_ms: int | None = None

    async def auto_create(self, names: Sequence[str]) -> dict[str, Outcome]:
        """Creates topics whose metadata a client requested; an existing topic is not an error."""
        requested = [_auto_topic(name, self._config) for name in dict.fromkeys(names)]
        outcomes = {name: Outcome(ErrorCode.unknown_topic_or_partition) for name in names}
        allowed = [topic for topic in requested if topic is not None]
        if allowed:
            outcomes.update(await self._client.create_missing_topics(allowed))
        return outcomes

    async def ensure_offsets_topic(self) -> Outcome:
        """Creates __consumer_offsets unless it exists. The message of a failure says what to do."""
        if OFFSETS_TOPIC in self._image.topics:
            return DONE
        outcome = (await self.auto_create([OFFSETS_TOPIC]))[OFFSETS_TOPIC]
        if not outcome.failed:
            return outcome
        reason = self._why_no_groups(outcome)
        now_ms = self._clock.monotonic_ms()
        if self._logged_ms is None or now_ms - self._logged_ms >= LOG_PAUSE_MS:
            self._logged_ms = now_ms
            logger.warning("%s", reason)
        return outcome._replace(message=reason)

    def _why_no_groups(self, outcome: Outcome) -> str:
        reason = (outcome.message or outcome.code.name.replace("_", " ")).rstrip(".")
        text = f"Consumer groups are not available: cannot create {OFFSETS_TOPIC}: {reason}."
        if outcome.code is not ErrorCode.invalid_replication_factor:
            return text
        running = ", ".join(map(str, sorted(self._image.brokers))) or "none"
        return (
            f"{text} Registered brokers: {running}. Start another broker, or start the brokers "
            f"with a lower offsets.topic.replication.factor."
        )


def _auto_topic(name: str, config: BrokerConfig) -> NewTopic | None:
    if name == TRANSACTIONS_TOPIC:
        return None
    if name != OFFSETS_TOPIC:
        return NewTopic(name)
    segment_bytes = config.offsets_topic_segment_bytes
    bounded = segment_bytes >= MIN_SEGMENT_BYTES
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
