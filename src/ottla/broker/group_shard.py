"""Runs the groups of one partition of `__consumer_offsets`.

A request or timer becomes a step: the shard decides, the step's records are appended to the
partition and applied, and its replies go out when everything appended so far is committed, in the
order of the steps. So no client ever sees what a new leader might not know. Reads wait in the same
way. A crash between append and reply leaves the records: the client asks again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from ottla.broker.clock import Clock
from ottla.broker.group_timers import GroupTimers
from ottla.groups.record_format import decode_key, decode_value, encode_key, encode_value
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard
from ottla.groups.step import Reply, SetTimer, Step, TimerEvent
from ottla.groups.stored import CoordinatorRecord, OffsetCommitKey, OffsetCommitValue
from ottla.protocol.errors import ApiError, ErrorCode

logger = logging.getLogger("ottla.groups")

RECORDS_BETWEEN_BREATHS: Final = 2_000
"""While loading, other work of the event loop gets its turn after so many records."""
TOMBSTONES_A_BATCH: Final = 1_000

KeyAndValue: TypeAlias = tuple[bytes, bytes | None]


class LogRecord(NamedTuple):
    """One record of a coordinator's partition."""

    offset: int
    key: bytes | None
    value: bytes | None


class CoordinatorLog(Protocol):
    """A coordinator's partition, as far as it needs one."""

    @property
    def high_watermark(self) -> int:
        """All records before this offset are committed."""

    def append(self, records: Sequence[KeyAndValue], now_ms: int) -> int:
        """Appends one batch and returns its last offset; raises ApiError where it cannot."""

    def read_all(self) -> Iterator[LogRecord]:
        """Every record, the oldest first, also those that are not committed yet."""

    async def committed(self, offset: int) -> bool:
        """Waits until this offset is committed; False where the partition goes elsewhere first."""


OnCommit: TypeAlias = Callable[[str, str, int, int, str, int], None]
"""Called with group, topic, partition, offset, metadata, now_ms once a commit is committed."""

OnLoaded: TypeAlias = Callable[[str, str, int, int, str], None]
"""Called with group, topic, partition, offset, metadata of each offset found when a shard loads."""


def coordinator_error(code: ErrorCode) -> ErrorCode:
    """What a failed append means to a client of the coordinator, as in Kafka."""
    match code:
        case (
            ErrorCode.unknown_topic_or_partition
            | ErrorCode.not_enough_replicas
            | ErrorCode.not_enough_replicas_after_append
            | ErrorCode.request_timed_out
        ):
            return ErrorCode.coordinator_not_available
        case ErrorCode.not_leader_or_follower | ErrorCode.kafka_storage_error:
            return ErrorCode.not_coordinator
        case (
            ErrorCode.message_too_large
            | ErrorCode.record_list_too_large
            | ErrorCode.invalid_fetch_size
        ):
            return ErrorCode.unknown_server_error
    return code


class _Delivery(NamedTuple):
    offset: int
    replies: list[Reply]
    commits: list[CoordinatorRecord]
    now_ms: int


class GroupShardDriver:
    """One shard with its log, timers and waiting replies; a reply's token is a future."""

    def __init__(
        self,
        partition: int,
        log: CoordinatorLog,
        settings: GroupSettings,
        clock: Clock,
        on_commit: OnCommit | None = None,
        on_loaded: OnLoaded | None = None,
    ) -> None:
        self.partition = partition
        self.shard = GroupShard()
        self._log = log
        self._settings = settings
        self._clock = clock
        self._on_commit = on_commit
        self._on_loaded = on_loaded
        self._timers = GroupTimers(self._expired)
        self._last_offset = -1
        self._deliveries: deque[_Delivery] = deque()
        self._delivering: asyncio.Task[None] | None = None
        self._closed = False
        self.loading = asyncio.get_running_loop().create_task(self._load())

    async def _load(self) -> None:
        """Only the newest record of a key counts, so only that is decoded, in the log's order."""
        newest: dict[bytes | None, bytes | None] = {}
        for number, record in enumerate(self._log.read_all(), 1):
            newest.pop(record.key, None)
            newest[record.key] = record.value
            self._last_offset = record.offset
            if number % RECORDS_BETWEEN_BREATHS == 0:
                await asyncio.sleep(0)
        now_ms, strange = self._clock.now_ms(), 0
        for number, (key, value) in enumerate(newest.items(), 1):
            strange += not self._apply_stored(key, value, now_ms)
            if number % RECORDS_BETWEEN_BREATHS == 0:
                await asyncio.sleep(0)
        if strange:
            logger.warning(
                "__consumer_offsets-%d: %d keys that are no classic group's were left alone",
                self.partition,
                strange,
            )
        if self._on_loaded is not None:
            for at, stood in self.shard.offsets.all():
                self._on_loaded(at.group, at.topic, at.partition, stood.offset, stood.metadata)
        step = self.step()
        self.shard.loaded(step)
        self.carry_out(step)

    def _apply_stored(self, encoded: bytes | None, content: bytes | None, now_ms: int) -> bool:
        if encoded is None:
            return False
        try:
            key = decode_key(encoded)
            if key is None:
                return False
            value = decode_value(key, content)
        except ValueError:
            return False
        self.shard.apply(key, value, now_ms)
        return True

    def step(self) -> Step:
        """A new step that happens now."""
        return Step(self._clock.now_ms(), self._settings)

    def carry_out(self, step: Step) -> None:
        """Does what a step says; raises ApiError where its records cannot be appended."""
        for timer in step.timers:
            if isinstance(timer, SetTimer):
                self._timers.set(timer.key, timer.delay_ms, timer.event)
            else:
                self._timers.cancel(timer.key)
        refusal = self._append(step) if step.records else None
        if step.replies or (self._on_commit is not None and step.records and refusal is None):
            self._deliver(step, refusal)
        if refusal is None and step.when_appended is not None:
            later = self.step()
            step.when_appended(later)
            self.carry_out(later)
        elif refusal is not None:
            if step.when_refused is not None:
                later = self.step()
                step.when_refused(later, refusal)
                self.carry_out(later)
            raise ApiError(refusal)

    def _append(self, step: Step) -> ErrorCode | None:
        if self._closed:
            # Whoever reads the log next, here or elsewhere, decides from now on.
            return ErrorCode.not_coordinator
        size = len(step.records)
        if all(record.value is None for record in step.records):
            # Tombstones stand each for itself, and there may be very many.
            size = TOMBSTONES_A_BATCH
        try:
            for start in range(0, len(step.records), size):
                batch = step.records[start : start + size]
                content = [(encode_key(key), encode_value(value)) for key, value in batch]
                self._last_offset = self._log.append(content, step.now_ms)
                for key, value in batch:
                    self.shard.apply(key, value, step.now_ms)
        except ApiError as error:
            logger.warning(
                "__consumer_offsets-%d: cannot append %d records: %s",
                self.partition,
                len(step.records),
                error,
            )
            return coordinator_error(error.code)
        return None

    # Replies, and what else waits for the high watermark.

    def _deliver(self, step: Step, refusal: ErrorCode | None) -> None:
        commits = step.records if refusal is None and self._on_commit is not None else []
        delivery = _Delivery(self._last_offset, step.replies, commits, step.now_ms)
        if self._last_offset < self._log.high_watermark and not self._deliveries:
            self._finish(delivery, None)
            return
        self._deliveries.append(delivery)
        if self._delivering is None or self._delivering.done():
            loop = asyncio.get_running_loop()
            self._delivering = loop.create_task(self._deliver_in_order())

    async def _deliver_in_order(self) -> None:
        while self._deliveries:
            error = await self._commit_error(self._deliveries[0].offset)
            self._finish(self._deliveries.popleft(), error)

    def _finish(self, delivery: _Delivery, error: ErrorCode | None) -> None:
        for future, result in delivery.replies:
            # A client that has gone has cancelled its future.
            if future.done():
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(ApiError(error))
        if error is None and self._on_commit is not None:
            for key, value in delivery.commits:
                if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
                    self._on_commit(
                        key.group,
                        key.topic,
                        key.partition,
                        value.offset,
                        value.metadata,
                        delivery.now_ms,
                    )

    async def settled(self) -> None:
        """Waits until all that was appended so far is committed; raises ApiError otherwise."""
        if self._last_offset >= self._log.high_watermark:
            error = await self._commit_error(self._last_offset)
            if error is not None:
                raise ApiError(error)

    async def _commit_error(self, offset: int) -> ErrorCode | None:
        if self._closed:
            return ErrorCode.not_coordinator
        try:
            async with asyncio.timeout(self._settings.offset_commit_timeout_ms / 1000):
                committed = await self._log.committed(offset)
        except TimeoutError:
            return ErrorCode.coordinator_not_available
        except ApiError as error:
            return coordinator_error(error.code)
        return None if committed and not self._closed else ErrorCode.not_coordinator

    @property
    def is_closed(self) -> bool:
        """The partition is not ours any more, or is read anew."""
        return self._closed

    def _expired(self, event: TimerEvent) -> None:
        step = self.step()
        self.shard.expired(event, step)
        try:
            self.carry_out(step)
        except ApiError as error:
            # Nobody waits for the outcome; the step has undone itself, and the log line is written.
            logger.debug("timer %s: %s", event, error)

    def close(self) -> None:
        """The partition is not ours any more: all that waits is told to go elsewhere."""
        self._closed = True
        self.loading.cancel()
        self._timers.cancel_all()
        if self._delivering is not None:
            self._delivering.cancel()
        while self._deliveries:
            self._finish(self._deliveries.popleft(), ErrorCode.not_coordinator)
        step = self.step()
        self.shard.unloaded(step)
        self._finish(_Delivery(-1, step.replies, [], step.now_ms), None)
