"""The share groups of this broker (KIP-932): finds a request's shard and waits for it.

What a decision wants of the share coordinators is asked of them here, once its records are
committed, and their answers go back to the shard. Each share partition is asked about once at a
time: a state that is begun again loses what it had, and must not do so under its members. The
states of a group are begun or deleted, never both at once (`state_turns`), and begun only once no
deletion can be late (`late_deletions`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.end_offsets import EndOffsets
from ottla.coordinator.late_deletions import LateDeletions
from ottla.coordinator.long_decisions import RunLong, run_at_once
from ottla.coordinator.share_decisions import ShareDecisions
from ottla.coordinator.state_turns import StateTurns
from ottla.groups.consumer.topics import Topics
from ottla.groups.history.events import SHARE
from ottla.groups.shard import GroupShard
from ottla.groups.share import administration
from ottla.groups.share.administration import StatesToDelete
from ottla.groups.share.describe import DescribedShareGroup
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.requests import HeartbeatRequest, HeartbeatResult, StatesToInitialize
from ottla.groups.share.state_partitions import PartitionsOfTopics
from ottla.groups.share.step import Step as ShareStep
from ottla.groups.step import Step
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.background import Background
from ottla.runtime.slices import Slices, parts
from ottla.share.shard import Summary
from ottla.share.stored import ShareKey

logger = logging.getLogger("ottla.groups")

T = TypeVar("T")

MAX_AT_ONCE: Final = 200
"""Share partitions of one question that are asked about at the same time."""


_UNDER_WAY: Final = "The share coordinator is beginning this share partition already. Try again."
_DELETED: Final = "States of this group were being deleted. Try again."
_NOT_WANTED: Final = "The group has changed meanwhile. Try again."


class ShareStates(Protocol):
    """The share coordinators, here and on other brokers. Every method raises ApiError.

    `is_wanted` is asked before each try; once it is False there is no other (NOT_COORDINATOR).
    """

    async def initialize(
        self, key: ShareKey, state_epoch: int, start_offset: int, is_wanted: Callable[[], bool]
    ) -> None:
        """Begins the state of a share partition; -1: its first leader chooses the offset."""

    async def delete(
        self,
        key: ShareKey,
        is_wanted: Callable[[], bool],
        unanswered: Callable[[], None],
    ) -> None:
        """Deletes the state, if there is any. `unanswered` is called after each try that had no
        answer, and may take effect later.
        """

    async def summary(self, key: ShareKey) -> Summary:
        """Where the share partition stands."""


class NoShareStates:
    """There are no share coordinators."""

    async def initialize(
        self, key: ShareKey, state_epoch: int, start_offset: int, is_wanted: Callable[[], bool]
    ) -> None:
        raise ApiError(ErrorCode.coordinator_not_available)

    async def delete(
        self,
        key: ShareKey,
        is_wanted: Callable[[], bool],
        unanswered: Callable[[], None],
    ) -> None:
        raise ApiError(ErrorCode.coordinator_not_available)

    async def summary(self, key: ShareKey) -> Summary:
        raise ApiError(ErrorCode.coordinator_not_available)


class AlteredOffsets(NamedTuple):
    """The error of each partition that is not altered."""

    errors: Mapping[tuple[UUID, int], ApiError]
    unknown: Collection[tuple[str, int]]
    """Topics and partitions that do not exist."""


class ShareGroups:
    """For the event loop's thread only. Every method raises ApiError."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupShard],
        partition_for: Callable[[str], int],
        states: ShareStates,
        ends: EndOffsets,
        background: Background,
        run_long: RunLong = run_at_once,
        note_refused: Callable[[str, str, str, ErrorCode], None] = lambda *_: None,
    ) -> None:
        """`run_long` runs in a thread what takes long. `note_refused` gets group, its type, member
        and error of a heartbeat that is refused.
        """
        self._note_refused = note_refused
        self._runtime = runtime
        self._decisions = ShareDecisions(runtime, run_long)
        self._partition_for = partition_for
        self._states = states
        self.ends = ends
        """Of the partitions of any topic."""
        self._background = background
        self._beginning: set[ShareKey] = set()
        """The share coordinator is asked to begin these now."""
        self._turns = StateTurns()
        self._late = LateDeletions()
        self._tenures: dict[int, int | None] = {}
        """By partition of `__consumer_offsets`: the leader epoch of which it is known what was
        being deleted when it began."""

    async def _decide(self, group: str, decide: Callable[[GroupShard, Step], T]) -> T:
        return await self._runtime.decide(self._partition_for(group), decide)

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResult:
        """ShareGroupHeartbeat."""
        index = self._partition_for(request.group)
        try:
            result = await self._decisions.heartbeat(index, request)
        except ApiError as error:
            self._note_refused(request.group, SHARE, request.member_id, error.code)
            raise
        if result.to_initialize is not None:
            self._background.spawn(self._begin(request.group, result.to_initialize))
        return result

    async def describe(self, group: str) -> DescribedShareGroup:
        """ShareGroupDescribe of one group (GROUP_ID_NOT_FOUND)."""
        if not group:
            raise ApiError(ErrorCode.invalid_group_id)
        return await self._decide(group, lambda shard, step: shard.describe_share_group(group))

    # States begin.

    async def _begin(self, group: str, wanted: StatesToInitialize) -> None:
        """Beside the requests; a later heartbeat tries again what fails."""
        try:
            errors = await self._initialize(group, wanted)
        except ApiError as error:
            logger.info("share group %s: what has state now is not stored: %s", group, error)
        else:
            if errors:
                why = next(iter(errors.values()))
                logger.warning(
                    "share group %s: %d partitions have no state yet: %s", group, len(errors), why
                )

    async def _initialize(
        self, group: str, wanted: StatesToInitialize
    ) -> dict[tuple[UUID, int], ApiError]:
        """Returns the error of each partition whose state is not begun."""
        await self._see_earlier_deletions(group)
        await self._late.over(group)
        async with self._turns.beginning(group):
            if self._late.is_expected(group):  # of a deletion whose turn was before
                raise ApiError(ErrorCode.coordinator_not_available, _DELETED)
            return await self._initialize_in_turn(group, wanted)

    async def _see_earlier_deletions(self, group: str) -> None:
        """Those that the coordinator before this one began, of any group in this partition."""
        index = self._partition_for(group)
        if index in self._tenures and self._tenures[index] == self._runtime.epoch(index):
            return
        deleted = await self._runtime.decide(index, lambda shard, step: shard.share.being_deleted())
        self._late.expect(deleted)
        self._tenures[index] = self._runtime.epoch(index)

    async def _initialize_in_turn(
        self, group: str, wanted: StatesToInitialize
    ) -> dict[tuple[UUID, int], ApiError]:
        mine: dict[ShareKey, int] = {}
        others: dict[ShareKey, str] = {}
        slices = Slices()
        is_wanted = self._tenure(group)
        try:
            for topic_id, offsets in wanted.offsets.items():
                for partition, offset in offsets.items():
                    await slices.count()
                    key = ShareKey(group, topic_id, partition)
                    if key in self._beginning:
                        others[key] = _UNDER_WAY
                    else:
                        mine[key] = offset
                        self._beginning.add(key)
            nothing: PartitionsOfTopics = {}
            still = await self._change_known(
                group, partial(_still_to_begin, wanted), default=nothing, more=len(mine)
            )
            due = {}
            for key, offset in mine.items():
                await slices.count()
                if key.partition in still.get(key.topic_id, ()):
                    due[key] = offset
                else:
                    others[key] = _NOT_WANTED
            errors = await _each(
                due, lambda key: self._states.initialize(key, wanted.epoch, due[key], is_wanted)
            )
            begun: dict[UUID, set[int]] = {}
            refused: dict[UUID, set[int]] = {}
            for key in due:
                await slices.count()
                of = refused if key in errors else begun
                of.setdefault(key.topic_id, set()).add(key.partition)
            await self._change_known(
                group, partial(_answered, begun, refused), default=None, more=len(due)
            )
        finally:
            self._beginning.difference_update(mine)
        found = {}
        for key, error in errors.items():
            await slices.count()
            found[key.topic_id, key.partition] = error
        for key, why in others.items():
            await slices.count()
            found[key.topic_id, key.partition] = ApiError(ErrorCode.coordinator_not_available, why)
        return found

    def _tenure(self, group: str) -> Callable[[], bool]:
        """Whether this broker still coordinates the group as it does now: another coordinator knows
        nothing of what this one asks."""
        index = self._partition_for(group)
        epoch = self._runtime.epoch(index)
        return lambda: epoch is not None and self._runtime.epoch(index) == epoch

    async def _change_known(
        self,
        group: str,
        work: Callable[[ShareGroup, Topics, ShareStep], T],
        *,
        default: T,
        more: int = 0,
    ) -> T:
        """The same for a group that may be gone, or have members: then nothing is done."""
        try:
            return await self._change(group, work, more=more)
        except ApiError as error:
            if error.code not in (ErrorCode.group_id_not_found, ErrorCode.non_empty_group):
                raise
            return default

    async def _change(
        self,
        group: str,
        work: Callable[[ShareGroup, Topics, ShareStep], T],
        *,
        more: int = 0,
        may_be_new: bool = False,
    ) -> T:
        return await self._decisions.change(
            self._partition_for(group), group, work, more=more, may_be_new=may_be_new
        )

    # Administrators.

    @asynccontextmanager
    async def forgetting(self, group: str) -> AsyncIterator[None]:
        """Within it a group is deleted: share coordinators have forgotten it, and no state of it
        begins. Other groups have nothing.
        """
        nothing: StatesToDelete = {}
        await self._see_earlier_deletions(group)
        async with self._turns.deleting(group):
            wanted = await self._change_known(group, administration.begin_removal, default=nothing)
            errors = await self._delete(group, wanted)
            for error in errors.values():
                raise error
            yield

    async def _delete(
        self, group: str, partitions: Mapping[UUID, Collection[int]]
    ) -> dict[ShareKey, ApiError]:
        keys = []
        slices = Slices()
        for topic_id, its in partitions.items():
            for partition in sorted(its):
                await slices.count()
                keys.append(ShareKey(group, topic_id, partition))
        is_wanted = self._tenure(group)
        unanswered = partial(self._late.expect, (group,))
        return await _each(keys, lambda key: self._states.delete(key, is_wanted, unanswered))

    async def alter_offsets(
        self, group: str, offsets: Mapping[str, Mapping[int, int]]
    ) -> AlteredOffsets:
        """AlterShareGroupOffsets, by topic and partition (NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND)."""
        if not group:
            raise ApiError(ErrorCode.invalid_group_id)
        altered = await self._change(
            group,
            partial(_alter, offsets),
            more=sum(map(len, offsets.values())),
            may_be_new=True,
        )
        errors: Mapping[tuple[UUID, int], ApiError] = {}
        if altered.to_initialize.offsets:
            errors = await self._initialize(group, altered.to_initialize)
        return AlteredOffsets(errors, altered.unknown)

    async def delete_offsets(
        self, group: str, topics: Sequence[str]
    ) -> dict[UUID, ApiError | None]:
        """DeleteShareGroupOffsets: the error, or None, of each topic in which the group had any
        (NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND).
        """
        if not group:
            raise ApiError(ErrorCode.invalid_group_id)
        await self._see_earlier_deletions(group)
        async with self._turns.deleting(group):
            wanted = await self._change(
                group, partial(_begin_offset_removal, topics), more=len(topics)
            )
            errors = await self._delete(group, wanted)
            found: dict[UUID, ApiError | None] = dict.fromkeys(wanted)
            for key, error in errors.items():
                found[key.topic_id] = error
            forgotten = [topic_id for topic_id, error in found.items() if error is None]
            if forgotten:
                await self._change_known(group, partial(_forgotten, forgotten), default=None)
            return found

    async def initialized(self, group: str) -> dict[UUID, frozenset[int]]:
        """The partitions of a group that have state; none for a group that is not there."""
        return await self._decide(group, lambda shard, step: shard.share.initialized(group))

    async def summaries(
        self, group: str, partitions: Mapping[UUID, Iterable[int]]
    ) -> dict[tuple[UUID, int], Summary | ApiError]:
        """Where each of these share partitions stands."""
        keys: set[ShareKey] = set()
        slices = Slices()
        for topic_id, its in partitions.items():
            for partition in its:
                await slices.count()
                keys.add(ShareKey(group, topic_id, partition))
        found: dict[tuple[UUID, int], Summary | ApiError] = {}

        async def ask(key: ShareKey) -> None:
            found[key.topic_id, key.partition] = await self._states.summary(key)

        for key, error in (await _each(keys, ask)).items():
            found[key.topic_id, key.partition] = error
        return found


async def _each(
    keys: Collection[ShareKey], ask: Callable[[ShareKey], Awaitable[None]]
) -> dict[ShareKey, ApiError]:
    """Asks about each of them, MAX_AT_ONCE at a time; returns the errors."""
    errors: dict[ShareKey, ApiError] = {}
    slices = Slices()

    async def ask_one(key: ShareKey) -> None:
        try:
            await ask(key)
        except ApiError as error:
            errors[key] = error

    for some in parts(list(keys), MAX_AT_ONCE):
        await slices.count(len(some))
        await asyncio.gather(*map(ask_one, some))
    return errors


def _still_to_begin(
    wanted: StatesToInitialize, group: ShareGroup, topics: Topics, step: ShareStep
) -> PartitionsOfTopics:
    return administration.still_to_begin(group, wanted)


def _answered(
    begun: PartitionsOfTopics,
    refused: PartitionsOfTopics,
    group: ShareGroup,
    topics: Topics,
    step: ShareStep,
) -> None:
    administration.states_answered(group, begun, refused, topics, step)


def _alter(
    offsets: Mapping[str, Mapping[int, int]], group: ShareGroup, topics: Topics, step: ShareStep
) -> administration.AlteredOffsets:
    return administration.alter_offsets(group, offsets, topics, step)


def _begin_offset_removal(
    names: Sequence[str], group: ShareGroup, topics: Topics, step: ShareStep
) -> StatesToDelete:
    return administration.begin_offset_removal(group, names, topics, step)


def _forgotten(
    topic_ids: Sequence[UUID], group: ShareGroup, topics: Topics, step: ShareStep
) -> None:
    administration.states_forgotten(group, topic_ids, step)
