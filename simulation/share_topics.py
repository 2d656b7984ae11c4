"""A topic that is deleted and made again under one name, and a share group that reads it (KIP-932).

In each life of the topic some records are written to it, and a member of the group accepts some;
then the topic is deleted, mostly while the member has records of it. The group stays, sometimes the
member, and always the share sessions. Whatever the faults:

    a record that a member was told is accepted is not delivered again
    what is read of a topic was written to it, not to one of its name before it

Once all is healed:

    a new topic of the name begins at its first record, delivered once, and is read to its end
    a topic that is gone has no state at any share coordinator
    the group can be deleted
"""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random
from typing import Any, Final
from uuid import UUID

from ottla.coordinator.share_coordinator import ShareCoordinator
from ottla.groups.shard import GroupShard
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.share.shard import ShareShard
from simulation.batches import produce
from simulation.broker import FIRST_WALL_MS
from simulation.clients import batches_of
from simulation.cluster import OFFSETS, SHARE_STATES, Cluster
from simulation.connection import RETRY_S, NoAnswerError
from simulation.replay import loaded
from simulation.share_lives import ShareLives
from simulation.share_requests import (
    LEAVES,
    Run,
    heartbeat,
    parts_of,
    runs_of,
    share_fetch,
)
from simulation.violation import Violation

GROUP: Final = "passing"
PASSING: Final = "p"
"""The topic."""
PARTITIONS: Final = 2
DELETE_GROUPS: Final = 42
STAYS: Final = 0.5
"""How often the member outlives the topic."""
STEP_S: Final = 20
"""For each step of a life: to be written, assigned, read, deleted."""
LATE_S: Final = 2
"""What was still under way has arrived by then."""


class _TooLongError(Exception):
    """A step did not come about."""


class ShareTopics:
    """One client does it all, in a process of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._random = Random(f"{cluster.seed} share topics")
        self._client = ShareLives(cluster, "share-topics", "10.0.8.2", GROUP, PASSING)
        self._connections = self._client.connections
        self._member = ""
        self._epoch = 0
        self._lives: dict[UUID, int] = {}
        self._accepted: dict[tuple[UUID, int], set[int]] = {}
        """Offsets, by topic id and partition."""

    async def start(self) -> None:
        """Begin the first life."""
        life = partial(self._life, is_checked=False)
        await self._client.start(life, NoAnswerError, _TooLongError, Violation)

    async def settle(self) -> None:
        """Once all is healed. Raises Violation."""
        await self._client.stop()
        try:
            await self._delete_topic()
            await asyncio.sleep(LATE_S)
            await self._delete_topic()
            if any(map(self._cluster.invariants.forgiven, (OFFSETS, SHARE_STATES))):
                return  # what was lost may have been what the group knew
            for _ in range(2):
                await self._life(is_checked=True)
            await self._until_nothing_left()
            if self._member:
                await self._beat(LEAVES)
            await self._delete_group()
        except (NoAnswerError, _TooLongError) as error:
            raise Violation(f"share group {GROUP}, in a whole cluster: {error}") from None

    # A life of the topic.

    async def _life(self, *, is_checked: bool) -> None:
        await self._cluster.operator.create(PASSING, PARTITIONS, self._cluster.factor)
        await self._until(lambda: self._topic_id() is not None, "it is not made")
        topic_id = self._topic_id()
        assert topic_id is not None
        self._connections.forget_topic(PASSING)
        self._lives.setdefault(topic_id, len(self._lives) + 1)
        counts = [self._random.randrange(1, 9) for _ in range(PARTITIONS)]
        for partition, count in enumerate(counts):
            await self._write(topic_id, partition, count)
        await self._join(topic_id)
        for partition, count in enumerate(counts):
            await self._read(topic_id, partition, count if is_checked else None)
        if self._random.random() >= STAYS:
            await self._beat(LEAVES)
            self._member = ""
        await self._delete_topic()

    def _topic_id(self) -> UUID | None:
        return self._cluster.invariants.topic_id(PASSING)

    async def _until(self, is_so: Any, why: str) -> None:
        until_s = self._cluster.loop.time() + STEP_S
        while not is_so():
            self._check_time(until_s, why)
            await asyncio.sleep(RETRY_S)

    def _check_time(self, until_s: float, why: str) -> None:
        if self._cluster.loop.time() > until_s or self._client.is_last:
            raise _TooLongError(why)

    async def _write(self, topic_id: UUID, partition: int, count: int) -> None:
        now_ms = FIRST_WALL_MS + self._cluster.now_ms()
        life = self._lives[topic_id]
        batch = build_batch(
            [Record(each, now_ms, None, f"{life}-{each}".encode()) for each in range(count)]
        )
        until_s = self._cluster.loop.time() + STEP_S
        code: ErrorCode | None = None
        while code is not ErrorCode.none:
            self._check_time(until_s, f"nothing is written: {code}")
            code, _ = await produce(self._connections, PASSING, partition, batch, topic_id)
            if code is not ErrorCode.none:
                self._connections.forget_leader(PASSING, partition)
                await asyncio.sleep(RETRY_S)

    async def _join(self, topic_id: UUID) -> None:
        """Until all partitions of this topic are the member's."""
        until_s = self._cluster.loop.time() + STEP_S
        assigned: set[int] = set()
        if not self._member:
            self._member, self._epoch = f"{self._random.getrandbits(64):x}", 0
        while len(assigned) < PARTITIONS:
            self._check_time(until_s, f"only the partitions {assigned} are assigned")
            answer = await self._beat(self._epoch)
            if answer.error_code is ErrorCode.none:
                self._epoch = answer.member_epoch
                if answer.assignment is not None:
                    assigned = {
                        number
                        for topic in answer.assignment.topic_partitions
                        if topic.topic_id == topic_id
                        for number in topic.partitions
                    }
            else:
                self._connections.forget_coordinator(GROUP)
                self._epoch, assigned = 0, set()
            await asyncio.sleep(RETRY_S)

    async def _read(self, topic_id: UUID, partition: int, count: int | None) -> None:
        """Some records, or all of so many: these are the whole partition, written at least once."""
        accepted = self._accepted.setdefault((topic_id, partition), set())
        until_s = self._cluster.loop.time() + STEP_S
        rounds = self._random.randrange(1, 5)
        held: list[Run] = []
        leader, epoch, has_moved = -1, 0, False
        while rounds > 0 if count is None else len(accepted) < count:
            self._check_time(until_s, f"{PASSING}-{partition} is read up to {sorted(accepted)}")
            rounds -= 1
            before, leader = leader, await self._connections.leader(PASSING, partition)
            if leader != before:
                held, epoch, has_moved = [], 0, before >= 0
            leadership = self._leadership(partition)
            acks, held = held, []
            limit = self._random.randrange(1, 8)
            request = share_fetch(GROUP, self._member, topic_id, partition, epoch, acks, limit)
            answer = await self._client.ask(leader, partition, request)
            epoch += 1
            if answer.error_code is not ErrorCode.none:
                epoch = 0
            for part in parts_of(answer):
                self._check_values(topic_id, part)
                held = runs_of(part.acquired_records)
                delivered = {each for first, last in held for each in range(first, last + 1)}
                is_sure = leadership == self._leadership(partition) and leadership[0] == (
                    topic_id,
                    leader,
                )
                if delivered & accepted and is_sure and not self._is_forgiven():
                    self._cluster.fail(
                        f"share group {GROUP}, {PASSING}-{partition}: {delivered & accepted} were "
                        f"accepted, and are delivered again"
                    )
                if count is not None and not accepted and not acks and not has_moved and held:
                    first = part.acquired_records[0]
                    if (first.first_offset, first.delivery_count) != (0, 1):
                        raise Violation(
                            f"share group {GROUP}, {PASSING}-{partition}: a new topic begins with "
                            f"{first.first_offset}, delivery {first.delivery_count}"
                        )
                if ErrorCode(part.acknowledge_error_code) is ErrorCode.none:
                    accepted |= {each for first, last in acks for each in range(first, last + 1)}
                if part.error_code is not ErrorCode.none:
                    self._connections.forget_leader(PASSING, partition)
                    await asyncio.sleep(RETRY_S)

    def _leadership(self, partition: int) -> tuple[tuple[UUID | None, int], int]:
        """Topic id, leader and its epoch, as the tree has them."""
        state = self._cluster.state(PASSING, partition)
        leader, epoch = (-1, -1) if state is None else (state["leader"], state["leader_epoch"])
        return (self._topic_id(), leader), epoch

    def _is_forgiven(self) -> bool:
        """Lost disks may have taken records with them, or what the group said of them."""
        return any(map(self._cluster.invariants.forgiven, (PASSING, OFFSETS, SHARE_STATES)))

    def _check_values(self, topic_id: UUID, part: Any) -> None:
        for _, records in batches_of(bytes(part.records or b"")):
            for record in records:
                life = (record.value or b"").partition(b"-")[0]
                if int(life) != self._lives[topic_id]:
                    self._cluster.fail(
                        f"share group {GROUP}: the topic's life {self._lives[topic_id]} has a "
                        f"record of {int(life)}"
                    )

    # Requests.

    async def _beat(self, epoch: int) -> Any:
        request = heartbeat(GROUP, PASSING, self._member, epoch)
        return await self._client.ask_coordinator(request, self._forget_member)

    def _forget_member(self) -> None:
        self._member = ""

    # The end.

    async def _delete_topic(self) -> None:
        until_s = self._cluster.loop.time() + STEP_S
        while self._topic_id() is not None:
            self._check_time(until_s, "it is not deleted")
            self._cluster.invariants.deleting(PASSING)
            await self._cluster.operator.delete(PASSING)
            await asyncio.sleep(RETRY_S)

    async def _until_nothing_left(self) -> None:
        """Share coordinators look after topics that are gone now and then."""
        for broker in self._cluster.brokers.values():
            node, process = broker.node, broker.process
            assert node is not None
            assert process is not None
            forget = partial(_forget_deleted_topics, node.shares.coordinator)
            await self._cluster.loop.start_in(process, forget)
        await self._until(lambda: self._left() is None, "states of deleted topics are left")

    def _left(self) -> str | None:
        for broker in self._cluster.brokers.values():
            for partition in loaded(broker):
                shard = partition.shard
                if isinstance(shard, ShareShard):
                    for key in shard.known:
                        if key.group_id == GROUP:
                            return f"{partition.name} at {broker.name} has {key}"
        return None

    async def _delete_group(self) -> None:
        """Raises _TooLongError."""
        build = messages_of(DELETE_GROUPS, 2, "request")
        request = build.DeleteGroupsRequest(groups_names=(GROUP,))
        broker = await self._connections.coordinator(GROUP)
        answer = await self._connections.ask(broker, request, 20_000)
        code = ErrorCode(answer.results[0].error_code)
        if code not in (ErrorCode.none, ErrorCode.group_id_not_found):
            raise _TooLongError(f"it is not deleted: {code.name}")
        for each in self._cluster.brokers.values():
            for partition in loaded(each):
                shard = partition.shard
                if isinstance(shard, GroupShard) and GROUP in shard.share.groups:
                    raise _TooLongError(f"it is at {each.name} after its deletion")


async def _forget_deleted_topics(coordinator: ShareCoordinator) -> None:
    """What its care does first, every five minutes."""
    runtime = coordinator._runtime
    for index in runtime.led_indexes():
        while await runtime.decide(index, coordinator._delete_states_of_deleted_topics):
            pass
