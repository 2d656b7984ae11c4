"""The group coordinator of this broker: finds a request's shard, and waits for its answer.

A group lives in one partition of `__consumer_offsets`, on that partition's leader. A shard is read
from its log when it is first asked for; until it is there, clients are told
COORDINATOR_LOAD_IN_PROGRESS and come back.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final, TypeVar

from ottla.broker.background import Background
from ottla.broker.clock import Clock
from ottla.broker.group_shard import CoordinatorLog, GroupShardDriver, OnCommit, OnLoaded
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
from ottla.groups.encoding import fits_string
from ottla.groups.offsets.commit import CommitRequest
from ottla.groups.offsets.fetch import FetchedOffset
from ottla.groups.partitioning import partition_for
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard
from ottla.groups.step import Step
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.kafka_uuid import random_uuid

logger = logging.getLogger("ottla.groups")

T = TypeVar("T")

LOAD_WAIT_S: Final = 0.1
"""Most shards are read faster than a client would come back."""
MEMBER_ID_NAME_LENGTH_MAX: Final = 1_000
"""A member id is made of the client's name; together they must fit into a record's string."""


class GroupCoordinators:
    """All shards that this broker leads.

    `open_log` gives a partition's log, and raises ApiError (NOT_COORDINATOR) where this broker does
    not lead it; `led_partitions` names those that it leads now; `partition_count` says how many the
    topic has (offsets.topic.num.partitions before it exists). After `resigned` a partition's shard
    is gone, and `close` ends them all.
    """

    def __init__(
        self,
        settings: GroupSettings,
        clock: Clock,
        open_log: Callable[[int], CoordinatorLog],
        led_partitions: Callable[[], Iterable[int]],
        partition_count: Callable[[], int],
        *,
        random: Random,
        on_commit: OnCommit | None = None,
        on_loaded: OnLoaded | None = None,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._open_log = open_log
        self._led_partitions = led_partitions
        self._partition_count = partition_count
        self._random = random
        self._on_commit = on_commit
        self._on_loaded = on_loaded
        self._drivers: dict[int, GroupShardDriver] = {}
        self._background = Background(logger, "removing expired offsets")
        self._closed = False

    # Partitions come and go.

    def start(self) -> None:
        """Begins the periodic removal of expired offsets and groups."""
        self._background.keep(self._sweep)

    def elected(self, partition: int) -> None:
        """This broker leads the partition now, or again in a new epoch: what it knew is read anew.

        It is read when first asked for: most coordinators of a dead broker's groups are asked at
        once, by the members themselves.
        """
        self.resigned(partition)

    def resigned(self, partition: int) -> None:
        """Another broker leads this partition of `__consumer_offsets` now, or it is gone."""
        driver = self._drivers.pop(partition, None)
        if driver is not None:
            driver.close()

    def close(self) -> None:
        """Ends all shards; requests that wait are answered with NOT_COORDINATOR."""
        self._closed = True
        self._background.cancel()
        for partition in list(self._drivers):
            self.resigned(partition)

    def partition_for(self, group: str) -> int:
        """The partition of `__consumer_offsets` that keeps this group."""
        return partition_for(group, self._partition_count())

    async def _driver(self, partition: int) -> GroupShardDriver:
        if self._closed:
            raise ApiError(ErrorCode.coordinator_not_available)
        driver = self._drivers.get(partition)
        if driver is None:
            log = self._open_log(partition)
            driver = GroupShardDriver(
                partition, log, self.settings, self._clock, self._on_commit, self._on_loaded
            )
            self._drivers[partition] = driver
        if not driver.loading.done():
            await asyncio.wait({driver.loading}, timeout=LOAD_WAIT_S)
            if not driver.loading.done():
                raise ApiError(ErrorCode.coordinator_load_in_progress)
        if driver.loading.cancelled() or driver.loading.exception() is not None:
            self._failed_to_load(driver)
            raise ApiError(ErrorCode.not_coordinator)
        if driver.is_closed:
            # Resigned between the end of its loading and now.
            raise ApiError(ErrorCode.not_coordinator)
        return driver

    def _failed_to_load(self, driver: GroupShardDriver) -> None:
        """The next request tries anew."""
        if self._drivers.get(driver.partition) is driver:
            del self._drivers[driver.partition]
            logger.error(
                "__consumer_offsets-%d: cannot be loaded: %s",
                driver.partition,
                "cancelled" if driver.loading.cancelled() else driver.loading.exception(),
            )

    async def _decide(self, group: str, decide: Callable[[GroupShard, Step], T]) -> T:
        """Lets the group's shard decide, and returns its result when that is committed."""
        driver = await self._driver(self.partition_for(group))
        return await self._decide_in(driver, decide)

    async def _decide_in(
        self, driver: GroupShardDriver, decide: Callable[[GroupShard, Step], T]
    ) -> T:
        step = driver.step()
        result = decide(driver.shard, step)
        driver.carry_out(step)
        await driver.settled()
        return result

    async def _park(self, group: str, decide: Callable[[GroupShard, Step, Any], None]) -> Any:
        """The same for a request whose answer comes with a later step."""
        driver = await self._driver(self.partition_for(group))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        step = driver.step()
        decide(driver.shard, step, answer)
        try:
            driver.carry_out(step)
        except ApiError:
            if not answer.done():
                raise
        return await answer

    # Members.

    async def join(self, request: JoinRequest) -> JoinResult:
        """JoinGroup; token and new member id are filled in here."""
        if not request.group or not fits_string(request.group):
            return JoinResult(ErrorCode.invalid_group_id, request.member_id)
        name = request.client_id if request.group_instance_id is None else request.group_instance_id
        new_id = f"{name[:MEMBER_ID_NAME_LENGTH_MAX]}-{random_uuid(self._random)}"

        def decide(shard: GroupShard, step: Step, answer: Any) -> None:
            shard.join(request._replace(token=answer, new_member_id=new_id), step)

        try:
            result: JoinResult = await self._park(request.group, decide)
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
            result: SyncResult = await self._park(request.group, decide)
        except ApiError as error:
            return SyncResult(error.code)
        return result

    async def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Heartbeat; while the group is being loaded a member need not worry."""
        if not request.group:
            return ErrorCode.invalid_group_id
        try:
            return await self._decide(
                request.group, lambda shard, step: shard.heartbeat(request, step)
            )
        except ApiError as error:
            loading = error.code is ErrorCode.coordinator_load_in_progress
            return ErrorCode.none if loading else error.code

    async def leave(self, group: str, leaving: tuple[LeavingMember, ...]) -> tuple[LeftMember, ...]:
        """LeaveGroup; raises ApiError where none of the members could be looked at."""
        if not group:
            raise ApiError(ErrorCode.invalid_group_id)
        return await self._decide(group, lambda shard, step: shard.leave(group, leaving, step))

    # Offsets.

    async def commit(self, request: CommitRequest) -> list[ErrorCode]:
        """OffsetCommit: the error of each offset; raises ApiError for all of them."""
        if not fits_string(request.group):
            raise ApiError(ErrorCode.invalid_group_id)
        return await self._decide(request.group, lambda shard, step: shard.commit(request, step))

    async def fetch(
        self,
        group: str,
        topics: tuple[tuple[str, uuid.UUID | None, tuple[int, ...]], ...],
    ) -> list[tuple[FetchedOffset, ...]]:
        """OffsetFetch: the offsets of each topic (name, id or None, partitions) in turn.

        Always waits for what is being committed, as Kafka does where the client requires stable
        offsets (KIP-447). Raises ApiError.
        """
        return await self._decide(
            group, lambda shard, step: [shard.fetch(group, *topic) for topic in topics]
        )

    async def fetch_all(self, group: str) -> dict[str, tuple[FetchedOffset, ...]]:
        """OffsetFetch of all topics; raises ApiError."""
        return await self._decide(group, lambda shard, step: shard.fetch_all(group))

    async def delete_offsets(
        self, group: str, topics: tuple[tuple[str, tuple[int, ...]], ...]
    ) -> list[list[ErrorCode]]:
        """OffsetDelete: each partition's error, by topic; raises ApiError for all of them."""
        if not group:
            raise ApiError(ErrorCode.invalid_group_id)
        return await self._decide(
            group, lambda shard, step: shard.delete_offsets(group, topics, step)
        )

    # Groups.

    async def describe(self, group: str) -> DescribedGroup:
        """DescribeGroups of one group; raises ApiError."""
        return await self._decide(group, lambda shard, step: shard.describe_group(group))

    async def list_groups(self, states: frozenset[str], types: frozenset[str]) -> list[ListedGroup]:
        """ListGroups over all shards, by state and type in lower case; raises ApiError."""
        found: list[ListedGroup] = []
        for partition in sorted(self._led_partitions()):
            try:
                driver = await self._driver(partition)
                found += await self._decide_in(
                    driver, lambda shard, step: shard.list_groups(states, types)
                )
            except ApiError as error:
                if error.code is not ErrorCode.not_coordinator:
                    raise
        return found

    async def delete_group(self, group: str) -> ErrorCode:
        """DeleteGroups of one group."""
        try:
            errors = await self._decide(
                group, lambda shard, step: shard.delete_groups([group], step)
            )
        except ApiError as error:
            return error.code
        return errors[group]

    # What happens to all shards.

    async def topic_deleted(self, topic: str, topic_id: uuid.UUID | None) -> None:
        """Remove all groups' offsets in a deleted topic.

        Returns when that is written, not when it is committed. Later metadata deltas wait for this
        call, and committing may need one of them (a smaller in-sync set).
        """

        def remove(shard: GroupShard, step: Step) -> None:
            shard.topic_deleted(topic, topic_id, step)

        await asyncio.gather(*(self._in_one(each, remove) for each in self._led_partitions()))

    async def remove_expired(self) -> None:
        """Removes expired offsets, and groups without offsets and members (KIP-211)."""
        await self._in_all(lambda shard, step: shard.remove_expired(step))

    async def _in_all(self, decide: Callable[[GroupShard, Step], None]) -> None:
        for partition in sorted(self._led_partitions()):
            await self._in_one(partition, decide)
            await asyncio.sleep(0)

    async def _in_one(self, partition: int, decide: Callable[[GroupShard, Step], None]) -> None:
        try:
            driver = await self._driver(partition)
            step = driver.step()
            decide(driver.shard, step)
            driver.carry_out(step)
        except ApiError as error:
            # It is another broker's by now, or full: the next sweep comes by again.
            logger.info("__consumer_offsets-%d: %s", partition, error)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self.settings.offsets_retention_check_interval_ms / 1000)
            await self.remove_expired()
