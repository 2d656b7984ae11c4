"""Copies many partitions from one leader: fetch, apply the results, fetch again.

One request is under way at a time. Within the session it names only what changed since the last
one, so an idle partition costs nothing. `replication.follower` decides what the results mean. Work
is done per batch, never per record, and after each slice of a large response the event loop serves
others.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from ottla.config.broker import BrokerConfig
from ottla.log.staged_append import STEP_BYTES, StagedAppend
from ottla.network.peer import Peer, PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import FETCH
from ottla.records.errors import CorruptBatchError
from ottla.records.header import Buffer, read_header
from ottla.replica.partition import Partition
from ottla.replica.replica_offsets import leader_offsets
from ottla.replica.replica_session import Key, ReplicaSession, Request
from ottla.replica.throttle import Throttle
from ottla.replication.follower import (
    Append,
    AwaitDelta,
    BackOff,
    Decision,
    FetchLeaderOffsets,
    FetchRequest,
    FetchResult,
    FollowerState,
    Truncate,
    TruncateFully,
)
from ottla.runtime.clock import Clock
from ottla.runtime.slices import in_turns
from ottla.runtime.waiting import Change, unwatch, watch

logger = logging.getLogger("ottla.replication")

Truncated = Callable[[str, int, int], None]
"""Called with topic, partition and the log's end after a truncation."""

FETCH_VERSION: Final = 17
"""Has the replica's state (KIP-903) and truncation on fetch (KIP-595)."""
FIRST_BACKOFF_MS: Final = 20
"""Two brokers learn of an election a moment apart. The earlier one retries soon, each time after
twice the wait, up to replica.fetch.backoff.ms: producers with acks=all wait for it."""
SLICE_PARTITIONS: Final = 100
SLICE_BYTES: Final = 1 << 20
FAILED_PAUSE_MS: Final = 30_000
"""The wait for a partition on which our own code failed."""


@dataclass(slots=True)
class Truncations:
    """What the followers here have truncated since the start; for the metrics."""

    records: int = 0
    committed_records: int = 0
    """Of these, how many were below the known high watermark: lost in an unclean election."""


@dataclass(slots=True)
class Followed:
    """A partition that this fetcher copies."""

    partition: Partition
    follower: FollowerState
    fault: str = ""
    """The last logged fault, so that it is logged once."""
    passing_ms: int = FIRST_BACKOFF_MS
    """The next wait if the leader does not have the metadata of this broker yet."""


class ReplicaFetcher:
    """The fetch loop for one leader; created and ended by ReplicaFetchers."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        leader: int,
        peer: Peer,
        throttle: Throttle,
        truncations: Truncations,
        *,
        broker_epoch: Callable[[], int],
        truncated: Truncated,
    ) -> None:
        self.leader = leader
        self._config = config
        self._clock = clock
        self._broker_epoch = broker_epoch
        self._truncated = truncated
        self._peer = peer
        self._throttle = throttle
        self._truncations = truncations
        self._followed: dict[Key, Followed] = {}
        self._changed: dict[Key, None] = {}
        """Partitions whose next request may differ from what the session has."""
        self._delayed: dict[Key, int] = {}
        """Until when they are left out, on the monotonic clock."""
        self._awaited: dict[Key, Partition] = {}
        """Those that are left out until their producers are known."""
        self._session = ReplicaSession()
        self._deltas = asyncio.Event()
        self._is_reachable = True
        self.working_on: Followed | None = None
        """The partition being processed; if the loop fails, the one on which it failed."""
        self._messages = messages_of(FETCH, FETCH_VERSION, "request")

    def __len__(self) -> int:
        return len(self._followed)

    @property
    def partitions(self) -> list[Partition]:
        """What it copies."""
        return [followed.partition for followed in self._followed.values()]

    def follow(self, partition: Partition) -> None:
        """Copy the partition from now on, in its current leader epoch."""
        key = partition.topic_id, partition.index
        follower = FollowerState(self.leader, partition.leader_epoch)
        self._followed[key] = Followed(partition, follower)
        self._delayed.pop(key, None)
        self._changed[key] = None
        self._deltas.set()

    def unfollow(self, key: Key) -> None:
        """Stop copying it; a result that is under way is ignored."""
        if self._followed.pop(key, None) is not None:
            self._delayed.pop(key, None)
            self._changed[key] = None

    def restart(self, peer: Peer) -> None:
        """After `run` failed (our own bug): `run` may be called again, to copy all partitions but
        the one on which it failed. That one waits, or is retried at its next `follow`, as Kafka's
        failedPartitions are.
        """
        self._peer, self._session = peer, ReplicaSession()
        for followed in self._followed.values():
            followed.follower = FollowerState(self.leader, followed.partition.leader_epoch)
        self._changed.update(dict.fromkeys(self._followed))
        failed, self.working_on = self.working_on, None
        if failed is not None:
            key = failed.partition.topic_id, failed.partition.index
            if self._followed.get(key) is failed:
                self._delayed[key] = self._clock.monotonic_ms() + FAILED_PAUSE_MS

    async def run(self) -> None:
        """Fetch until cancelled."""
        while True:
            request = self._next_request()
            if not len(self._session):
                await self._pause(self._until_delayed_ms())
                continue
            try:
                response = await self._peer.ask(
                    self._fetch(request), self._config.replica_socket_timeout_ms
                )
                self._reached()
                await self._carry_out_all(response)
            except PeerError as error:
                self._unreachable(error)
                await self._pause(self._config.replica_fetch_backoff_ms, always=True)

    def _reached(self) -> None:
        if not self._is_reachable:
            self._is_reachable = True
            logger.info("fetching from broker %d again", self.leader)

    def _unreachable(self, error: PeerError) -> None:
        self._session.lost()
        if self._is_reachable:
            self._is_reachable = False
            logger.warning("cannot copy from broker %d: %s", self.leader, error)

    async def _pause(self, wait_ms: int | None, *, always: bool = False) -> None:
        """Wait for a metadata delta or the time; with `always`, until the time has passed."""
        if always and wait_ms is not None:
            await asyncio.sleep(wait_ms / 1000)
            return
        self._deltas.clear()
        try:
            async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                await self._deltas.wait()
        except TimeoutError:
            return

    def _until_delayed_ms(self) -> int | None:
        if not self._delayed:
            return None
        return max(min(self._delayed.values()) - self._clock.monotonic_ms(), 1)

    def _next_request(self) -> Request:
        now_ms = self._clock.monotonic_ms()
        for key in [key for key, until_ms in self._delayed.items() if until_ms <= now_ms]:
            del self._delayed[key]
            self._changed[key] = None
        requests: dict[Key, FetchRequest | None] = {}
        for key in self._changed:
            awaited = self._awaited.pop(key, None)
            if awaited is not None:
                unwatch(awaited, self)
            followed = self.working_on = self._followed.get(key)
            if followed is None or key in self._delayed:
                requests[key] = None
            elif followed.partition.log.loading is not None:
                # After a truncation its producers are read, in a thread: see `changed`.
                self._awaited[key] = followed.partition
                watch(followed.partition, self)
                requests[key] = None
            elif self._is_throttled(followed.partition):
                self._delay(key)
                requests[key] = None
            else:
                requests[key] = followed.follower.next_request(followed.partition.log)
        self.working_on = None
        self._changed.clear()
        return self._session.request(requests)

    def changed(self, watched: Partition, change: Change) -> None:
        """Fetch a truncated partition again, once its producers are known."""
        if watched.log.loading is None:
            self._changed[watched.topic_id, watched.index] = None
            self._deltas.set()

    def _is_throttled(self, partition: Partition) -> bool:
        if not self._throttle.holds(partition.topic, partition.index):
            return False
        assert partition.state is not None
        return self._config.id not in partition.state.isr

    def _delay(self, key: Key, max_ms: int | None = None) -> None:
        wait_ms = self._config.replica_fetch_backoff_ms
        if max_ms is not None:
            wait_ms = min(wait_ms, max_ms)
        self._delayed[key] = self._clock.monotonic_ms() + wait_ms

    def _fetch(self, request: Request) -> Any:
        build, config = self._messages, self._config
        by_topic: dict[Any, list[Any]] = defaultdict(list)
        for (topic_id, index), position in request.requested.items():
            each = build.FetchPartition(
                partition=index,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.fetch_offset,
                last_fetched_epoch=position.last_fetched_epoch,
                log_start_offset=position.log_start_offset,
                partition_max_bytes=config.replica_fetch_max_bytes,
            )
            by_topic[topic_id].append(each)
        forgotten: dict[Any, list[int]] = defaultdict(list)
        for topic_id, index in request.forgotten:
            forgotten[topic_id].append(index)
        # Not the image's epoch: the image may not have this incarnation yet, or may lack this
        # broker for a while, and -1 is never checked (KIP-903).
        epoch = self._broker_epoch()
        return build.FetchRequest(
            replica_state=build.ReplicaState(replica_id=config.id, replica_epoch=epoch),
            max_wait=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=request.session_id,
            session_epoch=request.session_epoch,
            topics=tuple(
                build.FetchTopic(topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in by_topic.items()
            ),
            forgotten_topics_data=tuple(
                build.ForgottenTopic(topic_id=topic_id, partitions=tuple(indexes))
                for topic_id, indexes in forgotten.items()
            ),
        )

    async def _carry_out_all(self, response: Any) -> None:
        if not self._session.on_response(response.error_code, response.session_id):
            if response.error_code is not ErrorCode.fetch_session_id_not_found:
                await self._pause(self._config.replica_fetch_backoff_ms, always=True)
            return
        out_of_range: list[Followed] = []
        done = size_bytes = 0
        for topic in response.responses:
            for data in topic.partitions:
                key = topic.topic_id, data.partition_index
                followed, sent = self._followed.get(key), self._session.requested(key)
                if followed is None or sent is None:
                    continue
                self.working_on = followed
                result = result_of(data)
                with self._staged(key, followed, result.records) as staged:
                    if staged is not None:
                        await in_turns(staged.steps())
                        if self._followed.get(key) is not followed:
                            continue
                    decision = followed.follower.on_result(sent, result, followed.partition.log)
                    if isinstance(decision, FetchLeaderOffsets):
                        out_of_range.append(followed)
                    else:
                        self._carry_out(key, followed, decision)
                self._changed[key] = None
                done, size_bytes = done + 1, size_bytes + len(result.records)
                if done >= SLICE_PARTITIONS or size_bytes >= SLICE_BYTES:
                    done = size_bytes = 0
                    await asyncio.sleep(0)
        self.working_on = None
        if out_of_range:
            await self._fetch_leader_offsets(out_of_range)

    @contextmanager
    def _staged(
        self, key: Key, followed: Followed, records: Buffer
    ) -> Iterator[StagedAppend | None]:
        """Writes a large batch in steps, before its append is decided; None for other records."""
        header = None
        if len(records) > STEP_BYTES:
            with suppress(CorruptBatchError):  # the decision will be about that
                header = read_header(records)
        if header is None or header.size_bytes != len(records):
            yield None
            return
        staged = StagedAppend(followed.partition.log, header, records, self._clock.now_ms())
        try:
            yield staged
        finally:
            try:
                staged.end()
            except ApiError as error:
                self._back_off(key, followed, str(error), is_fault=True)

    async def _fetch_leader_offsets(self, out_of_range: list[Followed]) -> None:
        """Get the leader's log starts and ends, for fetch offsets out of its range."""
        timeout_ms = self._config.replica_socket_timeout_ms
        replica_id = self._config.id
        partitions = [each.partition for each in out_of_range]
        found = await leader_offsets(self._peer, replica_id, partitions, timeout_ms)
        for each in out_of_range:
            key = each.partition.topic_id, each.partition.index
            if self._followed.get(key) is not each:
                continue
            self.working_on = each
            offsets = found.get((each.partition.topic, each.partition.index))
            if offsets is None:
                self._delay(key)
            else:
                log = each.partition.log
                self._carry_out(key, each, each.follower.on_leader_offsets(*offsets, log))
            self._changed[key] = None
        self.working_on = None

    def _carry_out(self, key: Key, followed: Followed, decision: Decision) -> None:
        """If the disk fails, this broker stops, unless no other broker has the partition."""
        try:
            match decision:
                case Append():
                    self._append(followed, decision)
                case Truncate(offset):
                    self._truncate(followed.partition, offset)
                case TruncateFully(offset):
                    self._truncate_fully(followed.partition, offset)
                case BackOff(reason, is_fault):
                    self._back_off(key, followed, reason, is_fault=is_fault)
                case AwaitDelta(reason):
                    logger.debug("%s-%d: %s", followed.partition.topic, key[1], reason)
        except ApiError as error:
            self._back_off(key, followed, str(error), is_fault=True)

    def _append(self, followed: Followed, decision: Append) -> None:
        partition, now_ms = followed.partition, self._clock.now_ms()
        if decision.restart_at is not None:
            try:
                partition.truncate_fully(decision.restart_at, now_ms)
            finally:
                self._on_truncated(partition)
        partition.append_fetched(
            decision.records,
            decision.headers,
            leader_high_watermark=decision.leader_high_watermark,
            leader_log_start=decision.leader_log_start,
            now_ms=now_ms,
        )
        followed.fault, followed.passing_ms = "", FIRST_BACKOFF_MS
        self._throttle.record(partition.topic, partition.index, len(decision.records))

    def _truncate(self, partition: Partition, offset: int) -> None:
        end_offset, high_watermark = partition.log.end_offset, partition.high_watermark
        try:
            partition.truncate_to(offset, self._clock.now_ms())
        finally:
            self._on_truncated(partition)
        self._count(partition, partition.log.end_offset, end_offset, high_watermark)

    def _truncate_fully(self, partition: Partition, offset: int) -> None:
        end_offset = partition.log.end_offset
        try:
            partition.truncate_fully(offset, self._clock.now_ms())
        finally:
            self._on_truncated(partition)
        # This loses nothing: the leader's retention has already deleted these records.
        logger.info(
            "%s-%d ends at %d, before the start of the leader's log: restarting at %d",
            partition.topic, partition.index, end_offset, offset,
        )  # fmt: skip

    def _on_truncated(self, partition: Partition) -> None:
        self._truncated(partition.topic, partition.index, partition.log.end_offset)

    def _count(
        self, partition: Partition, truncated_to: int, end_offset: int, watermark: int
    ) -> None:
        if truncated_to >= end_offset:
            return
        # After a crash only the checkpointed high watermark is known: the true one may be higher.
        committed = max(min(watermark, end_offset) - truncated_to, 0)
        self._truncations.records += end_offset - truncated_to
        self._truncations.committed_records += committed
        logger.log(
            logging.WARNING if committed else logging.INFO,
            "%s-%d: truncated offsets %d to %d, which leader %d does not have"
            " (%d records, at least %d of them committed)",
            partition.topic, partition.index, truncated_to, end_offset - 1, self.leader,
            end_offset - truncated_to, committed,
        )  # fmt: skip

    def _back_off(self, key: Key, followed: Followed, reason: str, *, is_fault: bool) -> None:
        if is_fault:
            self._delay(key)
        else:
            self._delay(key, followed.passing_ms)
            max_ms = self._config.replica_fetch_backoff_ms
            followed.passing_ms = min(2 * followed.passing_ms, max_ms)
        if is_fault and reason != followed.fault:
            followed.fault = reason
            topic, index = followed.partition.topic, followed.partition.index
            logger.error("cannot copy %s-%d from broker %d: %s", topic, index, self.leader, reason)


def result_of(data: Any) -> FetchResult:
    """One partition's result in a FetchResponse."""
    diverging = data.diverging_epoch
    return FetchResult(
        data.error_code,
        data.high_watermark,
        data.log_start_offset,
        # Undefined unless the leader sends it: (-1, -1).
        None
        if diverging is None or diverging.epoch < 0
        else (diverging.epoch, diverging.end_offset),
        data.records or b"",
    )
