"""Copies many partitions from one leader: a fetch, its answers carried out, the next fetch.

One request is under way at a time; within the session it names only what changed since the last
one, so an idle partition costs nothing. What the answers mean is decided in
`replication.follower`. Work is done per batch, never per record, and after each slice of a large
answer the loop serves others.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.partition import Partition
from ottla.broker.replica_offsets import leader_offsets
from ottla.broker.replica_session import Key, ReplicaSession, Request
from ottla.broker.throttle import Throttle
from ottla.network.peer import Peer, PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import FETCH
from ottla.replication.follower import (
    Answer,
    Append,
    AskOffsets,
    AwaitDelta,
    BackOff,
    Decision,
    Follower,
    Question,
    Truncate,
    TruncateFully,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node

logger = logging.getLogger("ottla.replication")

FETCH_VERSION: Final = 17
"""With the replica's state (KIP-903) and, from 12 on, truncation on fetch (KIP-595)."""
FIRST_BACKOFF_MS: Final = 20
"""Two brokers hear of an election a moment apart. Who is early asks again soon, each time after
twice as long, up to replica.fetch.backoff.ms: producers that want all replicas wait for it."""
SLICE_PARTITIONS: Final = 100
SLICE_BYTES: Final = 1 << 20
FAILED_PAUSE_MS: Final = 30_000
"""A partition on which our own code failed is left alone for this long."""


@dataclass(slots=True)
class Truncations:
    """What followers here cut off since the start; for the metrics."""

    records: int = 0
    committed_records: int = 0
    """Of these, how many lay below the high watermark known here: what an unclean election lost."""


@dataclass(slots=True)
class Followed:
    """A partition that is copied."""

    partition: Partition
    follower: Follower
    fault: str = ""
    """The last fault told in the broker log, so that it is told once."""
    passing_ms: int = FIRST_BACKOFF_MS
    """The next pause where the leader does not have the metadata that this broker has."""


class ReplicaFetcher:
    """The loop for one leader; made and ended by ReplicaFetchers."""

    def __init__(
        self, node: Node, leader: int, peer: Peer, throttle: Throttle, truncations: Truncations
    ) -> None:
        self.leader = leader
        self._node = node
        self._peer = peer
        self._throttle = throttle
        self._truncations = truncations
        self._followed: dict[Key, Followed] = {}
        self._changed: dict[Key, None] = {}
        """Partitions whose question may differ from what the session has."""
        self._delayed: dict[Key, int] = {}
        """Until when they are left out, on the monotonic clock."""
        self._session = ReplicaSession()
        self._deltas = asyncio.Event()
        self._is_reachable = True
        self.working_on: Followed | None = None
        """Whose turn it is; where the loop failed, on which partition it did."""
        self._messages = messages_of(FETCH, FETCH_VERSION, "request")

    def __len__(self) -> int:
        return len(self._followed)

    def follow(self, partition: Partition) -> None:
        """Copies the partition from here on, in its present leader epoch."""
        key = partition.topic_id, partition.index
        follower = Follower(self.leader, partition.leader_epoch)
        self._followed[key] = Followed(partition, follower)
        self._delayed.pop(key, None)
        self._changed[key] = None
        self._deltas.set()

    def unfollow(self, key: Key) -> None:
        """Copies it no more; an answer that is under way is not carried out."""
        if self._followed.pop(key, None) is not None:
            self._delayed.pop(key, None)
            self._changed[key] = None

    def begin_anew(self, peer: Peer) -> None:
        """After `run` failed, which is our own bug: `run` may be called again, to copy all but the
        partition on which it failed. That one waits, or is tried at its next `follow`, as Kafka's
        failedPartitions are.
        """
        self._peer, self._session = peer, ReplicaSession()
        for followed in self._followed.values():
            followed.follower = Follower(self.leader, followed.partition.leader_epoch)
        self._changed.update(dict.fromkeys(self._followed))
        failed, self.working_on = self.working_on, None
        if failed is not None:
            key = failed.partition.topic_id, failed.partition.index
            if self._followed.get(key) is failed:
                self._delayed[key] = self._node.clock.monotonic_ms() + FAILED_PAUSE_MS

    async def run(self) -> None:
        """Fetches until it is cancelled."""
        while True:
            request = self._next_request()
            if not len(self._session):
                await self._pause(self._until_delayed_ms())
                continue
            try:
                response = await self._peer.ask(
                    self._fetch(request), self._node.config.replica_socket_timeout_ms
                )
                self._reached()
                await self._answered(response)
            except PeerError as error:
                self._unreachable(error)
                await self._pause(self._node.config.replica_fetch_backoff_ms, whatever=True)

    def _reached(self) -> None:
        if not self._is_reachable:
            self._is_reachable = True
            logger.info("broker %d answers again", self.leader)

    def _unreachable(self, error: PeerError) -> None:
        self._session.lost()
        if self._is_reachable:
            self._is_reachable = False
            logger.warning("cannot copy from broker %d: %s", self.leader, error)

    async def _pause(self, wait_ms: int | None, *, whatever: bool = False) -> None:
        """Wait for a metadata delta or the time; with `whatever`, for the time in any case."""
        if whatever and wait_ms is not None:
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
        return max(min(self._delayed.values()) - self._node.clock.monotonic_ms(), 1)

    def _next_request(self) -> Request:
        now_ms = self._node.clock.monotonic_ms()
        for key in [key for key, until_ms in self._delayed.items() if until_ms <= now_ms]:
            del self._delayed[key]
            self._changed[key] = None
        questions: dict[Key, Question | None] = {}
        for key in self._changed:
            followed = self.working_on = self._followed.get(key)
            if followed is None or key in self._delayed:
                questions[key] = None
            elif self._is_throttled(followed.partition):
                self._delay(key)
                questions[key] = None
            else:
                questions[key] = followed.follower.asks(followed.partition.log)
        self.working_on = None
        self._changed.clear()
        return self._session.request(questions)

    def _is_throttled(self, partition: Partition) -> bool:
        if not self._throttle.holds(partition.topic, partition.index):
            return False
        assert partition.state is not None
        return self._node.config.id not in partition.state.isr

    def _delay(self, key: Key, max_ms: int | None = None) -> None:
        wait_ms = self._node.config.replica_fetch_backoff_ms
        if max_ms is not None:
            wait_ms = min(wait_ms, max_ms)
        self._delayed[key] = self._node.clock.monotonic_ms() + wait_ms

    def _fetch(self, request: Request) -> Any:
        build, config = self._messages, self._node.config
        by_topic: dict[Any, list[Any]] = defaultdict(list)
        for (topic_id, index), question in request.asked.items():
            each = build.FetchPartition(
                partition=index,
                current_leader_epoch=question.leader_epoch,
                fetch_offset=question.fetch_offset,
                last_fetched_epoch=question.last_fetched_epoch,
                log_start_offset=question.log_start_offset,
                partition_max_bytes=config.replica_fetch_max_bytes,
            )
            by_topic[topic_id].append(each)
        forgotten: dict[Any, list[int]] = defaultdict(list)
        for topic_id, index in request.forgotten:
            forgotten[topic_id].append(index)
        # Not the image's: that may not know this life yet, or have none of us for a while, and -1
        # is an epoch that nobody checks (KIP-903).
        epoch = self._node.membership.broker_epoch
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

    async def _answered(self, response: Any) -> None:
        if not self._session.answered(response.error_code, response.session_id):
            if response.error_code is not ErrorCode.fetch_session_id_not_found:
                await self._pause(self._node.config.replica_fetch_backoff_ms, whatever=True)
            return
        out_of_range: list[Followed] = []
        done = size_bytes = 0
        for topic in response.responses:
            for data in topic.partitions:
                key = topic.topic_id, data.partition_index
                followed, asked = self._followed.get(key), self._session.asked(key)
                if followed is None or asked is None:
                    continue
                self.working_on = followed
                answer = answer_of(data)
                decision = followed.follower.answered(asked, answer, followed.partition.log)
                if isinstance(decision, AskOffsets):
                    out_of_range.append(followed)
                else:
                    self._carry_out(key, followed, decision)
                self._changed[key] = None
                done, size_bytes = done + 1, size_bytes + len(answer.records)
                if done >= SLICE_PARTITIONS or size_bytes >= SLICE_BYTES:
                    done = size_bytes = 0
                    await asyncio.sleep(0)
        self.working_on = None
        if out_of_range:
            await self._ask_offsets(out_of_range)

    async def _ask_offsets(self, those: list[Followed]) -> None:
        """Where the leader's logs start and end, for offsets that it does not have."""
        timeout_ms = self._node.config.replica_socket_timeout_ms
        replica_id = self._node.config.id
        partitions = [each.partition for each in those]
        found = await leader_offsets(self._peer, replica_id, partitions, timeout_ms)
        for each in those:
            key = each.partition.topic_id, each.partition.index
            if self._followed.get(key) is not each:
                continue
            self.working_on = each
            offsets = found.get((each.partition.topic, each.partition.index))
            if offsets is None:
                self._delay(key)
            else:
                log = each.partition.log
                self._carry_out(key, each, each.follower.offsets_answered(*offsets, log))
            self._changed[key] = None
        self.working_on = None

    def _carry_out(self, key: Key, followed: Followed, decision: Decision) -> None:
        """Where the disk takes no more this broker ends, unless nobody else has the partition."""
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
        partition, now_ms = followed.partition, self._node.clock.now_ms()
        if decision.restart_at is not None:
            partition.truncate_fully(decision.restart_at, now_ms)
            self._was_cut(partition)
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
        partition.truncate_to(offset, self._node.clock.now_ms())
        self._was_cut(partition)
        self._count(partition, partition.log.end_offset, end_offset, high_watermark)

    def _truncate_fully(self, partition: Partition, offset: int) -> None:
        end_offset = partition.log.end_offset
        partition.truncate_fully(offset, self._node.clock.now_ms())
        self._was_cut(partition)
        # Nothing is lost by it: the leader's retention has removed these already.
        logger.info(
            "%s-%d ends at %d, before the leader's log starts: begins anew at %d",
            partition.topic, partition.index, end_offset, offset,
        )  # fmt: skip

    def _was_cut(self, partition: Partition) -> None:
        self._node.care.was_cut(partition.topic, partition.index, partition.log.end_offset)

    def _count(self, partition: Partition, cut_to: int, end_offset: int, watermark: int) -> None:
        if cut_to >= end_offset:
            return
        # A crash leaves only the checkpointed high watermark: the true one may have been higher.
        committed = max(min(watermark, end_offset) - cut_to, 0)
        self._truncations.records += end_offset - cut_to
        self._truncations.committed_records += committed
        logger.log(
            logging.WARNING if committed else logging.INFO,
            "%s-%d: offsets %d to %d are dropped, which leader %d does not have"
            " (%d records, of which at least %d were committed)",
            partition.topic, partition.index, cut_to, end_offset - 1, self.leader,
            end_offset - cut_to, committed,
        )  # fmt: skip

    def _back_off(self, key: Key, followed: Followed, reason: str, *, is_fault: bool) -> None:
        if is_fault:
            self._delay(key)
        else:
            self._delay(key, followed.passing_ms)
            max_ms = self._node.config.replica_fetch_backoff_ms
            followed.passing_ms = min(2 * followed.passing_ms, max_ms)
        if is_fault and reason != followed.fault:
            followed.fault = reason
            topic, index = followed.partition.topic, followed.partition.index
            logger.error("cannot copy %s-%d from broker %d: %s", topic, index, self.leader, reason)


def answer_of(data: Any) -> Answer:
    """One partition's answer out of a FetchResponse."""
    diverging = data.diverging_epoch
    return Answer(
        data.error_code,
        data.high_watermark,
        data.log_start_offset,
        # Undefined unless the leader says otherwise: (-1, -1).
        None
        if diverging is None or diverging.epoch < 0
        else (diverging.epoch, diverging.end_offset),
        data.records or b"",
    )
