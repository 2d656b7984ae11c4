"""The group coordinator of this broker: finds a request's shard, and waits for its decision.

A group belongs to one partition of `__consumer_offsets`, and is coordinated by that partition's
leader. Group and member ids are checked here, and new member ids made.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Any, Final, TypeAlias, TypeVar

from ottla.coordinator.consumer_decisions import ConsumerDecisions
from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.end_offsets import EndOffsets
from ottla.coordinator.late_offsets import LateOffsets
from ottla.coordinator.long_decisions import RunLong, run_at_once
from ottla.coordinator.regex_matching import MayDescribe, RegexMatching, may_describe_all
from ottla.coordinator.shard_kind import ShardKind
from ottla.coordinator.share_groups import NoShareStates, ShareGroups, ShareStates
from ottla.coordinator.streams_groups import StreamsGroups
from ottla.groups.classic.requests import (
    DescribedGroup,
    HeartbeatRequest,
    JoinRequest,
    JoinResult,
    LeavingMember,
    LeftMember,
    ListedGroup,
    SyncRequest,
    SyncResult,
)
from ottla.groups.consumer.describe import DescribedConsumerGroup
from ottla.groups.consumer.requests import HeartbeatRequest as ConsumerHeartbeat
from ottla.groups.consumer.requests import HeartbeatResult as ConsumerHeartbeatResult
from ottla.groups.consumer.settings import ConsumerGroupSettings, default_settings
from ottla.groups.consumer.topics import NO_TOPICS, Topics
from ottla.groups.history.events import (
    CLASSIC,
    CONSUMER,
    NO_EPOCH,
    Cause,
    Event,
    Happened,
    Loaded,
    Who,
    Why,
)
from ottla.groups.offsets.commit import (
    DEFAULT_RETENTION,
    CommitRequest,
    OffsetRecords,
    OffsetsCommitted,
    check_count,
    expiry_ms,
    write_offsets,
)
from ottla.groups.offsets.fetch import (
    NO_MEMBER,
    NO_OFFSET,
    FetchedOffset,
    FetchingMember,
)
from ottla.groups.offsets.transactional_commit import TransactionalCommitRequest
from ottla.groups.records import decode, encode
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard
from ottla.groups.share.settings import ShareGroupSettings, default_share_settings
from ottla.groups.step import Step
from ottla.groups.stored import OffsetCommitValue
from ottla.groups.streams.settings import StreamsGroupSettings, default_streams_settings
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.protocol.kafka_uuid import random_uuid, uuid_text
from ottla.protocol.regular_expression import compile_expression
from ottla.runtime.background import Background
from ottla.runtime.slices import Slices, parts
from ottla.shards.encoding import fits_string
from ottla.shards.partitioning import partition_for
from ottla.shards.step import ProducerEpoch, TransactionMarker

logger = logging.getLogger("ottla.groups")

T = TypeVar("T")

_Partitions: TypeAlias = tuple[str, uuid.UUID | None, tuple[int, ...]]
"""A topic's name, its id if that is asked for, and partitions."""
Verify: TypeAlias = Callable[[TransactionalCommitRequest, int], Awaitable[ErrorCode]]

MAX_MEMBER_NAME_LENGTH: Final = 1_000
"""A member id is made of the client's name; together they must fit into a record's string."""

MAX_OFFSETS_AT_ONCE: Final = 2_000
"""Of a commit whose records are made and encoded together with the decision, in about 10 ms."""

MAX_FETCHED_AT_ONCE: Final = 10_000
"""Topics and partitions, in about 5 ms."""
MAX_GROUPS_AT_ONCE: Final = 10_000
"""Whose offset in one partition is looked up, in about 5 ms."""
MAX_DELETED_AT_ONCE: Final = 1_000
"""Topics and partitions: each may be a record."""
MAX_LEAVING_AT_ONCE: Final = 1_000
"""Members; more leave one part after the other."""

_NOT_READY: Final = frozenset(
    (
        ErrorCode.coordinator_not_available,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.not_coordinator,
    )
)


def group_kind(
    settings: GroupSettings,
    *,
    topics: Callable[[], Topics] = lambda: NO_TOPICS,
    consumer_settings: Callable[[str], ConsumerGroupSettings] = default_settings,
    share_settings: Callable[[str], ShareGroupSettings] = default_share_settings,
    streams_settings: Callable[[str], StreamsGroupSettings] = default_streams_settings,
    on_committed: Callable[[OffsetsCommitted], None] | None = None,
    on_event: Callable[[Event | Loaded], None] | None = None,
) -> ShardKind[GroupShard]:
    """Groups as a kind of coordinator: `__consumer_offsets`. `topics` and the settings of a
    consumer, share or streams group are those of this moment. `on_event` gets
    what histories are made of.
    """

    def committed(entry: OffsetsCommitted | Event | Loaded) -> None:
        if isinstance(entry, OffsetsCommitted):
            if on_committed is not None:
                on_committed(entry)
        elif on_event is not None:
            on_event(entry)

    return ShardKind(
        topic=OFFSETS_TOPIC,
        settings=settings,
        new_shard=partial(GroupShard, topics, consumer_settings, share_settings, streams_settings),
        encode=encode,
        decode=decode,
        commit_timeout_ms=settings.offset_commit_timeout_ms,
        newest_suffices=True,
        on_committed=committed,
    )


NOTED_REFUSALS: Final = frozenset(
    (
        ErrorCode.unknown_member_id,
        ErrorCode.fenced_instance_id,
        ErrorCode.fenced_member_epoch,
    )
)
"""Of heartbeats: those that the history of the group has."""


class GroupCoordinator:
    """The groups of every partition of `__consumer_offsets` that this broker leads.

    `partition_count` is how many the topic has (offsets.topic.num.partitions before it exists).
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupShard],
        partition_count: Callable[[], int],
        *,
        random: Random,
        verify: Verify | None = None,
        verifies_older: Callable[[], bool] = lambda: True,
        topics: Callable[[], Topics] = lambda: NO_TOPICS,
        run_long: RunLong | None = None,
        share_states: ShareStates | None = None,
        share_ends: EndOffsets | None = None,
        note: Callable[[Event], None] = lambda event: None,
    ) -> None:
        """`verify` asks the coordinator of a transaction whether this partition of
        `__consumer_offsets` is a part of it, or makes it one; None: transactions are not verified.
        `verifies_older`: now also those of clients that add the partition themselves. `topics` are
        the cluster's now, `run_long` runs in a thread what takes long. `share_states` are the share
        coordinators, `share_ends` the leaders of what share groups read; None: there are none.
        `note` gets what is refused and belongs to a group's history.
        """
        self._runtime = runtime
        self.late_offsets = LateOffsets(runtime)
        self._settings: GroupSettings = runtime.kind.settings
        self._partition_count = partition_count
        self._random = random
        self._verify = verify
        self._verifies_older = verifies_older
        self._note = note
        self._background = Background(logger, "groups")
        run_long = run_long or run_at_once
        self._consumers = ConsumerDecisions(runtime, run_long)
        self._regexes = RegexMatching(self._consumers, topics, run_long, self._background)
        ends = share_ends or EndOffsets(lambda topic, partition: None, _ask_nobody)
        self.share = ShareGroups(
            runtime,
            self.partition_for,
            share_states or NoShareStates(),
            ends,
            self._background,
            run_long,
            self._note_refused,
        )
        """The requests about share groups."""
        self.streams = StreamsGroups(runtime, self.partition_for, run_long, self._note_refused)
        """The requests about streams groups."""

    def start(self) -> None:
        """Begins the periodic removal of expired offsets and groups."""
        self._background.keep(self._sweep)

    def close(self) -> None:
        """Stops it. The owner of the runtime closes the runtime."""
        self._background.cancel()

    def partition_for(self, group: str) -> int:
        """The partition of `__consumer_offsets` that holds this group."""
        return partition_for(group, self._partition_count())

    async def _decide(self, group: str, decide: Callable[[GroupShard, Step], T]) -> T:
        return await self._runtime.decide(self.partition_for(group), decide)

    # Members.

    async def join(self, request: JoinRequest) -> JoinResult:
        """JoinGroup; the token and a new member's id are filled in here."""
        if not request.group or not fits_string(request.group):
            return JoinResult(ErrorCode.invalid_group_id, request.member_id)
        if not request.member_id:
            made = random_uuid(self._random)
            request = request._replace(
                new_member_id=_new_member_id(request, made), new_consumer_id=uuid_text(made)
            )

        def decide(shard: GroupShard, step: Step, answer: Any) -> None:
            shard.join(request._replace(token=answer), step)

        index = self.partition_for(request.group)
        try:
            found = await self._consumers.join(index, request)
            result: JoinResult = found or await self._runtime.park(index, decide)
        except ApiError as error:
            return JoinResult(error.code, request.member_id)
        return result

    async def sync(self, request: SyncRequest) -> SyncResult:
        """SyncGroup; the token is filled in here."""
        if not request.group:
            return SyncResult(ErrorCode.invalid_group_id)

        def decide(shard: GroupShard, step: Step, answer: Any) -> None:
            shard.sync(request._replace(token=answer), step)

        try:
            result: SyncResult = await self._runtime.park(self.partition_for(request.group), decide)
        except ApiError as error:
            return SyncResult(error.code)
        return result

    async def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Heartbeat; a group that is being loaded answers without an error."""
        if not request.group:
            return ErrorCode.invalid_group_id
        try:
            error = await self._decide(
                request.group, lambda shard, step: shard.heartbeat(request, step)
            )
            if error is not ErrorCode.none:
                self._note_refused(request.group, CLASSIC, request.member_id, error)
            return error
        except ApiError as error:
            loading = error.code is ErrorCode.coordinator_load_in_progress
            return ErrorCode.none if loading else error.code

    async def leave(self, group: str, leaving: tuple[LeavingMember, ...]) -> tuple[LeftMember, ...]:
        """LeaveGroup; raises ApiError where none of the members could be looked at."""
        if not group:
            raise ApiError(ErrorCode.invalid_group_id)
        if len(leaving) <= MAX_LEAVING_AT_ONCE:
            return await self._decide(group, lambda shard, step: shard.leave(group, leaving, step))
        left: list[LeftMember] = []
        for some in parts(leaving, MAX_LEAVING_AT_ONCE):
            left += await self._leave_next(group, some, is_first=not left)
            await asyncio.sleep(0)
        return tuple(left)

    async def _leave_next(
        self, group: str, leaving: Sequence[LeavingMember], *, is_first: bool
    ) -> Sequence[LeftMember]:
        """Some members of many. Once others have left, an error is that of each that has not."""
        try:
            return await self._decide(group, lambda shard, step: shard.leave(group, leaving, step))
        except ApiError as error:
            if is_first:
                raise
            return [
                LeftMember(each.member_id, each.group_instance_id, error.code) for each in leaving
            ]

    async def consumer_heartbeat(
        self,
        request: ConsumerHeartbeat,
        version: int,
        may_describe: MayDescribe = may_describe_all,
    ) -> ConsumerHeartbeatResult:
        """ConsumerGroupHeartbeat; a new member's id is filled in here. Raises ApiError.

        `may_describe`: of topics that a regular expression matches.
        """
        if not all(map(fits_string, (request.group, request.member_id))):
            raise ApiError(ErrorCode.invalid_request, "A name is longer than 32,767 bytes.")
        if not request.member_id:
            request = request._replace(new_member_id=uuid_text(random_uuid(self._random)))
        if request.subscribed_regex:
            _check_regex(request.subscribed_regex)
        index = self.partition_for(request.group)
        try:
            result = await self._consumers.heartbeat(index, request, version)
        except ApiError as refused:
            self._note_refused(request.group, CONSUMER, request.member_id, refused.code)
            raise
        if result.due_regexes:
            self._regexes.begin(index, request.group, result.due_regexes, may_describe)
        return result

    def _note_refused(self, group: str, kind: str, member_id: str, error: ErrorCode) -> None:
        """A heartbeat was refused: a member that was removed, or replaced, does not know it."""
        if error not in NOTED_REFUSALS:
            return
        why = Why.CAME_LATE if error is ErrorCode.unknown_member_id else Why.FENCED
        now_ms = self._runtime.new_step().now_ms
        self._note(Happened(group, kind, NO_EPOCH, now_ms, Cause(why, Who(member_id))))

    def is_coordinator_of(self, group: str) -> bool:
        """Whether this broker is the group's, as far as it knows."""
        return self.partition_for(group) in self._runtime.led_indexes()

    # Offsets.

    async def commit(self, request: CommitRequest) -> list[ErrorCode]:
        """OffsetCommit: the error of each offset; raises ApiError for all of them."""
        if not fits_string(request.group):
            raise ApiError(ErrorCode.invalid_group_id)
        if len(request.offsets) > MAX_OFFSETS_AT_ONCE:
            records = await self._prepared(request, request.retention_ms)
            request = request._replace(prepared=records)
        return await self._decide(request.group, lambda shard, step: shard.commit(request, step))

    async def _prepared(
        self, request: CommitRequest | TransactionalCommitRequest, retention_ms: int
    ) -> OffsetRecords:
        """The records of a large commit, made and encoded in slices. Raises ApiError."""
        check_count(request.offsets, self._settings)
        encode, slices = self._runtime.kind.encode, Slices()
        step = self._runtime.new_step()
        expire_ms = expiry_ms(retention_ms, step.now_ms)
        made = OffsetRecords([], step.records, [])
        for offsets in parts(request.offsets):
            await slices.count(len(offsets))
            made.errors.extend(write_offsets(request.group, offsets, expire_ms, step))
            made.encoded.extend(encode(record) for record in step.records[len(made.encoded) :])
        return made

    async def commit_in_transaction(self, request: TransactionalCommitRequest) -> list[ErrorCode]:
        """TxnOffsetCommit: the error of each offset; raises ApiError for all of them."""
        if not request.group or not fits_string(request.group):
            raise ApiError(ErrorCode.invalid_group_id)
        index = self.partition_for(request.group)
        if len(request.offsets) > MAX_OFFSETS_AT_ONCE:
            records = await self._prepared(request, DEFAULT_RETENTION)
            request = request._replace(prepared=records)
        guard = await self._verified(index, request)

        def decide(shard: GroupShard, step: Step) -> list[ErrorCode]:
            step.guard = guard
            return shard.commit_in_transaction(request, step)

        return await self._runtime.decide(index, decide)

    async def _verified(self, index: int, request: TransactionalCommitRequest) -> object | None:
        """The guard for an append in this transaction, which its coordinator has confirmed.

        Raises ApiError. As in Kafka, transaction.partition.verification.enable=false does not
        concern clients that leave it to the broker to add the partition.
        """
        enabled = request.adds_partition or self._verifies_older()
        if self._verify is None or not enabled:
            return None
        verification = await self._runtime.begin_verification(
            index, request.producer, version_2=request.adds_partition
        )
        if verification.is_needed:
            error = await self._verify(request, index)
            if error is not ErrorCode.none:
                raise ApiError(self._runtime.kind.error_of(error))
        return verification.guard

    async def complete_transaction(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int = 0,
    ) -> None:
        """Writes the marker that ends a producer's transaction in this partition of
        `__consumer_offsets`; returns when that is committed. `transaction_version` is that of the
        producer's client (KIP-890).

        Raises ApiError: what the log refuses a marker with, and NOT_LEADER_OR_FOLLOWER while this
        broker does not coordinate the partition (KafkaApis.handleWriteTxnMarkersRequest): the
        sender expects the errors of a log, not those of a coordinator, and tries again.
        """
        producer = ProducerEpoch(producer_id, producer_epoch)
        marker = TransactionMarker(producer, committed, coordinator_epoch, transaction_version)
        try:
            await self._runtime.decide(
                partition, lambda shard, step: shard.end_transaction(marker, step)
            )
        except ApiError as error:
            if error.code in _NOT_READY:
                raise ApiError(ErrorCode.not_leader_or_follower, error.message) from None
            raise

    async def fetch(
        self,
        group: str,
        topics: Sequence[_Partitions],
        *,
        require_stable: bool = False,
        member: FetchingMember = NO_MEMBER,
    ) -> list[tuple[FetchedOffset, ...]]:
        """OffsetFetch: the offsets of each topic (name, id or None, partitions) in turn.

        Always waits for what is being committed, as Kafka does where the client requires stable
        offsets (KIP-447). With `require_stable` an offset that an open transaction may change has
        the error UNSTABLE_OFFSET_COMMIT. More than MAX_FETCHED_AT_ONCE are read in parts. Raises
        ApiError, also where a consumer group has no such member in such an epoch.
        """
        if _are_at_most(topics, MAX_FETCHED_AT_ONCE):
            return await self._fetch_at_once(group, topics, require_stable, member)
        found: list[tuple[FetchedOffset, ...]] = []
        for numbers, some in _in_parts(topics, MAX_FETCHED_AT_ONCE):
            fetched = await self._fetch_at_once(group, some, require_stable, member)
            for number, offsets in zip(numbers, fetched, strict=True):
                if number == len(found):
                    found.append(offsets)
                else:
                    found[number] += offsets
            await asyncio.sleep(0)
        return found

    def _fetch_at_once(
        self,
        group: str,
        topics: Sequence[_Partitions],
        require_stable: bool,
        member: FetchingMember,
    ) -> Awaitable[list[tuple[FetchedOffset, ...]]]:
        def decide(shard: GroupShard, step: Step) -> list[tuple[FetchedOffset, ...]]:
            shard.check_fetch(group, member)
            return [shard.fetch(group, *topic, require_stable=require_stable) for topic in topics]

        return self._decide(group, decide)

    async def fetch_all(
        self, group: str, *, require_stable: bool = False, member: FetchingMember = NO_MEMBER
    ) -> dict[str, tuple[FetchedOffset, ...]]:
        """OffsetFetch of all topics; many offsets are read in parts. Raises ApiError."""

        def decide(
            shard: GroupShard, step: Step
        ) -> dict[str, tuple[FetchedOffset, ...]] | list[_Partitions]:
            shard.check_fetch(group, member)
            if shard.offsets.count(group) <= MAX_FETCHED_AT_ONCE:
                return shard.fetch_all(group, require_stable=require_stable)
            return [
                (topic, None, tuple(partitions))
                for topic, partitions in shard.offsets.of_group(group).items()
            ]

        found = await self._decide(group, decide)
        if isinstance(found, dict):
            return found
        fetched = await self.fetch(group, found, require_stable=require_stable)
        # What is removed meanwhile has no offset any more.
        return {
            topic: tuple(
                [
                    each
                    for each in offsets
                    if each.offset != NO_OFFSET or each.error is not ErrorCode.none
                ]
            )
            for (topic, _, _), offsets in zip(found, fetched, strict=True)
        }

    async def offsets_of(
        self, topic: str, partition: int, within_ms: int
    ) -> dict[int, dict[str, OffsetCommitValue]]:
        """Every group's offset in one partition, by the partition of `__consumer_offsets` that has
        the group. Those that do not answer in time are left out: they are being loaded, or wait for
        a commit.
        """
        tasks = {
            index: asyncio.ensure_future(self._offsets_in(index, topic, partition))
            for index in self._runtime.led_indexes()
        }
        if tasks:
            _, late = await asyncio.wait(tasks.values(), timeout=within_ms / 1000)
            for task in late:
                task.cancel()
        found = {}
        for index, task in tasks.items():
            if task.done() and not task.cancelled():
                error = task.exception()
                if error is None:
                    found[index] = task.result()
                elif not isinstance(error, ApiError):
                    raise error
        return found

    async def _offsets_in(
        self, index: int, topic: str, partition: int
    ) -> dict[str, OffsetCommitValue]:
        """The same of one partition of `__consumer_offsets`; many groups are read in parts."""
        found: dict[str, OffsetCommitValue] = {}
        groups = await self._runtime.decide(index, lambda shard, _: shard.offsets.groups())
        for some in parts(groups, MAX_GROUPS_AT_ONCE):
            found |= await self._runtime.decide(index, partial(_offsets_of, topic, partition, some))
            await asyncio.sleep(0)
        return found

    async def share_groups_of(self, topic_id: uuid.UUID, partition: int) -> list[str]:
        """The share groups of this coordinator with state of one partition; raises ApiError."""
        found = await self._runtime.decide_in_each(
            lambda shard, _: shard.share.groups_of(topic_id, partition)
        )
        return sorted(group for groups in found for group in groups)

    async def delete_offsets(
        self, group: str, topics: tuple[tuple[str, tuple[int, ...]], ...]
    ) -> list[list[ErrorCode]]:
        """OffsetDelete: each partition's error, by topic. More than MAX_DELETED_AT_ONCE are
        deleted in parts. Raises ApiError.
        """
        if not group:
            raise ApiError(ErrorCode.invalid_group_id)
        errors: list[list[ErrorCode]] = []
        named = ((topic, None, partitions) for topic, partitions in topics)
        for numbers, some in _in_parts(named, MAX_DELETED_AT_ONCE):
            wanted = tuple((topic, partitions) for topic, _, partitions in some)
            deleted = await self._decide(group, partial(_delete_offsets, group, wanted))
            for number, codes in zip(numbers, deleted, strict=True):
                if number == len(errors):
                    errors.append(codes)
                else:
                    errors[number] += codes
            await asyncio.sleep(0)
        return errors

    # Groups.

    async def describe(self, group: str) -> DescribedGroup:
        """DescribeGroups of one group; raises ApiError."""
        return await self._decide(group, lambda shard, step: shard.describe_group(group))

    async def describe_consumer_group(self, group: str) -> DescribedConsumerGroup:
        """ConsumerGroupDescribe of one group; raises ApiError (GROUP_ID_NOT_FOUND)."""
        if not group:
            raise ApiError(ErrorCode.invalid_group_id)
        return await self._decide(group, lambda shard, step: shard.describe_consumer_group(group))

    async def list_groups(self, states: frozenset[str], types: frozenset[str]) -> list[ListedGroup]:
        """ListGroups over all shards, by state and type in lower case; raises ApiError."""
        found = await self._runtime.decide_in_each(
            lambda shard, step: shard.list_groups(states, types)
        )
        return [group for groups in found for group in groups]

    async def delete_group(self, group: str) -> ErrorCode:
        """DeleteGroups of one group. Share coordinators forget it before.

        Raises ApiError if one of the coordinators cannot be asked; it may have a message.
        """
        async with self.share.forgetting(group):
            while True:
                error = await self._decide(
                    group, lambda shard, step: shard.delete_group(group, step)
                )
                if error is not None:
                    return error
                await asyncio.sleep(0)

    # What concerns every shard.

    async def topic_deleted(self, topic: str, topic_id: uuid.UUID | None) -> None:
        """Removes every group's offsets in a deleted topic.

        Returns when that is appended, not when it is committed. Later metadata deltas wait for this
        call, and committing may need one of them (a smaller in-sync set).
        """

        def remove(shard: GroupShard, step: Step) -> bool:
            return shard.topic_deleted(topic, topic_id, step)

        indexes = self._runtime.led_indexes()
        await asyncio.gather(*(self._write_until_done(index, remove) for index in indexes))

    async def _write_until_done(
        self, index: int, decide: Callable[[GroupShard, Step], bool]
    ) -> None:
        """Decides again while the result is False, as long as the partition takes it."""
        while await self._runtime.write(index, decide) is False:
            await asyncio.sleep(0)

    async def remove_expired(self) -> None:
        """Removes expired offsets, and groups without offsets and members (KIP-211)."""
        for index in self._runtime.led_indexes():
            groups = await self._runtime.write(index, lambda shard, step: shard.group_ids())
            for some in parts(groups or ()):
                await self._write_until_done(index, partial(_remove_expired, some))
                await asyncio.sleep(0)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._settings.offsets_retention_check_interval_ms / 1000)
            await self.remove_expired()


async def _ask_nobody(broker: int, request: Any) -> Any:
    raise AssertionError("no partition has a leader")


def _new_member_id(request: JoinRequest, made: uuid.UUID) -> str:
    name = request.client_id if request.group_instance_id is None else request.group_instance_id
    return f"{name[:MAX_MEMBER_NAME_LENGTH]}-{made}"


def _check_regex(expression: str) -> None:
    """Raises ApiError(INVALID_REGULAR_EXPRESSION)."""
    if not fits_string(expression):
        raise ApiError(ErrorCode.invalid_request, "A name is longer than 32,767 bytes.")
    try:
        compile_expression(expression)
    except ApiError as error:
        raise ApiError(error.code, f"SubscribedTopicRegex {error.message}.") from None


def _offsets_of(
    topic: str, partition: int, groups: Sequence[str], shard: GroupShard, step: Step
) -> dict[str, OffsetCommitValue]:
    return shard.offsets.of_partition(topic, partition, groups)


def _delete_offsets(
    group: str, topics: tuple[tuple[str, tuple[int, ...]], ...], shard: GroupShard, step: Step
) -> list[list[ErrorCode]]:
    return shard.delete_offsets(group, topics, step)


def _remove_expired(groups: Sequence[str], shard: GroupShard, step: Step) -> bool:
    return shard.remove_expired(step, groups)


def _are_at_most(topics: Sequence[_Partitions], count: int) -> bool:
    """Whether they are at most so many topics and partitions."""
    if len(topics) > count:
        return False
    for _, _, partitions in topics:
        count -= 1 + len(partitions)
    return count >= 0


def _in_parts(
    topics: Iterable[_Partitions], size: int
) -> Iterator[tuple[list[int], list[_Partitions]]]:
    """Topics and partitions, `size` at a time, with the number of each topic; one part if there are
    none.
    """
    numbers: list[int] = []
    some: list[_Partitions] = []
    left, is_first = size, True
    for number, (topic, topic_id, partitions) in enumerate(topics):
        start = 0
        while True:
            end = start + max(left - 1, 0)
            numbers.append(number)
            some.append((topic, topic_id, partitions[start:end]))
            left -= 1 + len(some[-1][2])
            if left <= 1:
                yield numbers, some
                numbers, some, left, is_first = [], [], size, False
            start = end
            if start >= len(partitions):
                break
    if some or is_first:
        yield numbers, some
