"""Writes the dead letters of share groups into their topics (KIP-1191).

The leader of the records' partition writes them, with acks=all, once it is stored that the records
are being archived: a leader that ends before the records are archived is followed by one that
writes the dead letters again. So there is at least one for each record.

What cannot be written is given up, logged and counted, and the records are archived all the same,
as in Kafka's ShareGroupDLQStateManager: a topic of dead letters that is missing must not stop the
group. Here more faults are thought to pass than Kafka thinks (too few replicas in sync, a topic
that a broker does not know yet), and they are waited for longer: LIMIT_MS, not five attempts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, Final, NamedTuple
from uuid import UUID

from ottla.cluster.topic_settings import TopicSettings
from ottla.config.broker import BrokerConfig
from ottla.config.group import GroupConfig
from ottla.controller.group_settings import settings_of_group
from ottla.controller.image import NO_LEADER, ClusterImage
from ottla.controller.plan import Outcome
from ottla.controller.topics import NewTopic
from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import PRODUCE
from ottla.replica.dead_letter_contents import Found, read_contents
from ottla.replica.disk_reads import DiskReads
from ottla.replica.partition import Partition
from ottla.runtime.clock import Clock
from ottla.share.dead_letter import Origin, Wanted, pack, refusal
from ottla.share.share_partition import Letter
from ottla.wording.plural import plural

logger = logging.getLogger("ottla.share")

VERSION: Final = 13
"""Of Produce: topics by their ids."""
ACK_WITHIN_MS: Final = 15_000
FIRST_PAUSE_MS: Final = 100
MAX_PAUSE_MS: Final = 5_000
LIMIT_MS: Final = 60_000
"""For one batch with all its tries."""
MAX_UNDER_WAY: Final = 20
"""Requests, of this broker."""
AGAIN: Final = frozenset(
    (
        ErrorCode.not_leader_or_follower,
        ErrorCode.leader_not_available,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.kafka_storage_error,
        ErrorCode.network_exception,
        ErrorCode.request_timed_out,
    )
)
TOPIC_SETTINGS: Final = (
    ("errors.deadletterqueue.group.enable", "true"),
    ("message.timestamp.type", "CreateTime"),
)
"""Of a topic that is created for dead letters."""


class _Target(NamedTuple):
    """Where dead letters go."""

    topic: str
    topic_id: UUID
    partition: int
    leader: int


class DeadLetters:
    """For the event loop's thread only."""

    def __init__(
        self,
        config: BrokerConfig,
        image: Callable[[], ClusterImage],
        topics: TopicSettings,
        clock: Clock,
        reads: DiskReads,
        ask: Callable[[int, Any], Awaitable[Any]],
        create: Callable[[Sequence[NewTopic]], Awaitable[dict[str, Outcome]]],
        random: Random,
    ) -> None:
        """`ask` sends a request to a broker, maybe this one, and raises PeerError. `create` asks
        the controller; a topic that exists is not an error."""
        self._config = config
        self._image = image
        self._topics = topics
        self._clock = clock
        self._reads = reads
        self._ask = ask
        self._create = create
        self._random = random
        self._turns = asyncio.Semaphore(MAX_UNDER_WAY)
        self.written = 0
        self.given_up = 0
        """Records whose dead letter could not be written."""

    async def write(
        self,
        partition: Partition,
        group_id: str,
        letters: Sequence[Letter],
        is_wanted: Callable[[], bool],
    ) -> int | None:
        """The dead letters of these records of a partition that this broker leads, or as many as
        can be written: from which offset on they are given up, None if they are not. Ends before
        that once they are not wanted any more."""
        origin = Origin(group_id, partition.topic, partition.index)
        at: int | None = letters[0].first
        try:
            while at is not None and is_wanted():
                found = await self._found(partition, group_id, at, letters[-1].last)
                while at is not None and at <= found.until and is_wanted():
                    at = await self._write_batch(origin, letters, at, found, is_wanted)
        except ApiError as error:
            assert at is not None
            self._give_up(origin, letters, at, error)
            return at
        return None

    def _give_up(self, origin: Origin, letters: Sequence[Letter], at: int, error: ApiError) -> None:
        lost = sum(each.last + 1 - max(each.first, at) for each in letters if each.last >= at)
        self.given_up += lost
        logger.error(
            "group %s on %s-%d: the dead letters of %s from offset %d on are not written, and "
            "never will be: %s",
            *origin,
            plural(lost, "record"),
            at,
            error,
        )

    def _settings(self, group_id: str) -> GroupConfig:
        return settings_of_group(self._image(), self._config, group_id)

    async def _found(self, partition: Partition, group_id: str, first: int, last: int) -> Found:
        """Keys and values, if the group wants them and they can be read."""
        settings = self._settings(group_id)
        if not settings.errors_deadletterqueue_copy_record_enable:
            return Found({}, last)
        budget = self._max_bytes(settings.errors_deadletterqueue_topic_name)
        try:
            return await read_contents(partition, first, last, budget, self._reads)
        except ApiError as error:
            logger.warning(
                "group %s on %s-%d: records from offset %d on cannot be read for their dead "
                "letters, which have headers only: %s",
                group_id,
                partition.topic,
                partition.index,
                first,
                error,
            )
            return Found({}, last)

    def _max_bytes(self, topic: str) -> int:
        return self._topics.log_config(topic).max_message_bytes

    async def _write_batch(
        self,
        origin: Origin,
        letters: Sequence[Letter],
        at: int,
        found: Found,
        is_wanted: Callable[[], bool],
    ) -> int | None:
        """Where the next batch begins; None if that was the last one. Raises ApiError."""
        until_ms = self._clock.monotonic_ms() + LIMIT_MS
        pause_ms = FIRST_PAUSE_MS
        while True:
            try:
                return await self._try(origin, letters, at, found)
            except ApiError as error:
                is_over = self._clock.monotonic_ms() + pause_ms > until_ms
                if error.code not in AGAIN or is_over:
                    raise
                logger.info("group %s: dead letters are not written yet: %s", origin[0], error)
            await asyncio.sleep(pause_ms / 1000 * self._random.uniform(0.8, 1.2))
            if not is_wanted():
                return at
            pause_ms = min(2 * pause_ms, MAX_PAUSE_MS)

    async def _try(
        self, origin: Origin, letters: Sequence[Letter], at: int, found: Found
    ) -> int | None:
        async with self._turns:
            target = await self._target(origin)
            packed = pack(
                origin,
                letters,
                at,
                found.until,
                found.contents,
                self._clock.now_ms(),
                self._max_bytes(target.topic),
            )
            await self._produce(target, packed.batch)
        self.written += packed.size
        return packed.next_offset

    async def _target(self, origin: Origin) -> _Target:
        """Raises ApiError: INVALID_CONFIG if the topic may not be used, why it cannot be created,
        LEADER_NOT_AVAILABLE."""
        topic = self._settings(origin.group_id).errors_deadletterqueue_topic_name
        known = self._image().topic(topic)
        wanted = Wanted(
            topic,
            known is not None,
            self._topics.topic_config(topic).errors_deadletterqueue_group_enable,
            self._config.errors_deadletterqueue_auto_create_topics_enable,
            self._config.errors_deadletterqueue_topic_name_prefix,
        )
        reason = refusal(origin.group_id, wanted)
        if reason is not None:
            raise ApiError(ErrorCode.invalid_config, reason)
        if known is None:
            outcome = (await self._create([NewTopic(topic, configs=TOPIC_SETTINGS)]))[topic]
            if outcome.failed:
                raise ApiError(outcome.code, f"{topic} cannot be created: {outcome.message}")
            known = self._image().topic(topic)
        if known is None:
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"{topic} is new.")
        index = origin.partition % len(known.partitions)
        leader = known.partitions[index].leader
        if leader == NO_LEADER or leader not in self._image().brokers:
            raise ApiError(ErrorCode.leader_not_available, f"{topic}-{index} has no leader.")
        return _Target(topic, known.topic_id, index, leader)

    async def _produce(self, target: _Target, batch: bytes) -> None:
        """Raises ApiError."""
        build = messages_of(PRODUCE, VERSION, "request")
        request = build.ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout=ACK_WITHIN_MS,
            topic_data=(
                build.TopicProduceData(
                    topic_id=target.topic_id,
                    partition_data=(
                        build.PartitionProduceData(index=target.partition, records=batch),
                    ),
                ),
            ),
        )
        try:
            response = await self._ask(target.leader, request)
        except PeerError as error:
            raise ApiError(ErrorCode.network_exception, str(error)) from None
        (topic,) = response.responses
        (answer,) = topic.partition_responses
        code = ErrorCode(answer.error_code)
        if code is not ErrorCode.none:
            message = answer.error_message or code.name.replace("_", " ")
            raise ApiError(code, f"{target.topic}-{target.partition}: {message}")
