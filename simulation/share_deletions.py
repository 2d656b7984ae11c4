"""A share group that is made and deleted again and again (KIP-932), under one name.

In each life a member joins, reads some records, accepts them and leaves; sometimes the group's
offsets are set or deleted then (AlterShareGroupOffsets, DeleteShareGroupOffsets); then the group is
deleted (DeleteGroups). While there are faults, nobody knows which request arrives, and when. Once
all is healed, and a deletion is confirmed:

    a new group        is assigned all partitions, and begins at the first record, delivered once
    after the deletion there is no group of that name, and no share coordinator has state of it
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, Final
from uuid import UUID

from ottla.groups.shard import GroupShard
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.share.shard import ShareShard
from simulation.cluster import OFFSETS, SHARE_STATES, TOPIC, Cluster
from simulation.connection import RETRY_S, Connections, NoAnswerError
from simulation.process import Process
from simulation.replay import loaded
from simulation.violation import Violation

GROUP: Final = "gone"
HEARTBEAT, FETCH, ACKNOWLEDGE = 76, 78, 79
DELETE_GROUPS, ALTER_OFFSETS, DELETE_OFFSETS = 42, 91, 92
ACCEPT: Final = 1
LEAVES: Final = -1
FINAL_EPOCH: Final = -1
JOINS_WITHIN_S: Final = 20
DELETED_WITHIN_S: Final = 40
LATE_S: Final = 2
"""What was still under way has arrived by then."""
ALTERED: Final = 0.3
OFFSETS_DELETED: Final = 0.3


class ShareDeletions:
    """One client does it all, in a process of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._random = Random(f"{cluster.seed} share deletions")
        self._connections = Connections("share-deletions", cluster.addresses)
        self._topic_id: UUID | None = None
        self._open: dict[tuple[int, str], None] = {}
        """By broker and member: share sessions whose end was not answered. As long as there is one,
        a leader goes on with what it knows of the group, as Kafka's."""
        self._is_stopping = False
        self._has_stopped = False
        self.deleted = 0
        """Deletions that were confirmed."""

    async def start(self) -> None:
        """Begin the first life; the group begins at the earliest record."""
        await self._cluster.operator.set_group_config(GROUP, share_auto_offset_reset="earliest")
        self._cluster.loop.start_in(Process("10.0.8.1"), self._run)

    async def _run(self) -> None:
        while not self._is_stopping:
            try:
                await self._life(is_checked=False)
                await self._change_offsets()
                await self._delete(self._cluster.pace.s(5))
            except (NoAnswerError, Violation):
                self._connections.forget_coordinator(GROUP)
                await asyncio.sleep(RETRY_S)
        self._has_stopped = True

    async def settle(self) -> None:
        """Once all is healed: what must hold of two lives and their ends. Raises Violation."""
        self._is_stopping = True
        while not self._has_stopped:
            await asyncio.sleep(RETRY_S)
        invariants = self._cluster.invariants
        if any(map(invariants.forgiven, (TOPIC, OFFSETS, SHARE_STATES))):
            return  # what was lost may have been the deletion
        await self._delete(DELETED_WITHIN_S)
        await asyncio.sleep(LATE_S)
        for broker, member in list(self._open):
            await self._ask(broker, 0, self._end(member, 0, []))
            del self._open[broker, member]
        await self._delete(DELETED_WITHIN_S)
        for _ in range(2):
            try:
                await self._life(is_checked=True)
            except NoAnswerError as error:
                raise Violation(
                    f"share group {GROUP}: no answer in a whole cluster: {error}"
                ) from None
            await self._delete(DELETED_WITHIN_S)
        self._check_nothing_left()

    def _check_nothing_left(self) -> None:
        for broker in self._cluster.brokers.values():
            for partition in loaded(broker):
                shard = partition.shard
                if isinstance(shard, GroupShard) and GROUP in shard.share.groups:
                    raise Violation(f"share group {GROUP} is at {broker.name} after its deletion")
                if isinstance(shard, ShareShard):
                    left = [key for key in shard.known if key.group_id == GROUP]
                    if left:
                        raise Violation(
                            f"share group {GROUP} is deleted, and {partition.name} on {broker.name}"
                            f" has its state of partition {left[0].partition}"
                        )

    # A life.

    async def _life(self, *, is_checked: bool) -> None:
        member = f"{self._random.getrandbits(64):x}"
        assigned = await self._join(member)
        if is_checked and set(assigned) != set(range(self._cluster.partitions)):
            raise Violation(
                f"share group {GROUP} has only the partitions {assigned} after {JOINS_WITHIN_S} s"
            )
        try:
            for partition in assigned:
                await self._read(member, partition, is_checked=is_checked)
        finally:
            await self._beat(member, LEAVES)

    async def _join(self, member: str) -> list[int]:
        until_s = self._cluster.loop.time() + JOINS_WITHIN_S
        epoch = 0
        assigned: list[int] = []
        while len(assigned) < self._cluster.partitions and self._cluster.loop.time() < until_s:
            answer = await self._beat(member, epoch)
            if answer.error_code is not ErrorCode.none:
                self._connections.forget_coordinator(GROUP)
                if answer.error_code in (
                    ErrorCode.unknown_member_id,
                    ErrorCode.fenced_member_epoch,
                ):
                    epoch, assigned = 0, []
            else:
                epoch = answer.member_epoch
                if answer.assignment is not None:
                    assigned = []
                    for topic in answer.assignment.topic_partitions:
                        self._topic_id = topic.topic_id
                        assigned += topic.partitions
            if self._is_stopping and not self._has_stopped:
                break
            await asyncio.sleep(RETRY_S)
        return sorted(assigned)

    async def _beat(self, member: str, epoch: int) -> Any:
        build = messages_of(HEARTBEAT, 1, "request")
        request = build.ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=(TOPIC,) if epoch == 0 else None,
        )
        return await self._ask_coordinator(request)

    async def _read(self, member: str, partition: int, *, is_checked: bool) -> None:
        """Some records of a partition, which are accepted; then the session ends."""
        found: list[tuple[int, int]] = []
        for epoch in range(3):
            leader = await self._connections.leader(TOPIC, partition)
            acks, found = found, []
            self._open[leader, member] = None
            answer = await self._ask(leader, partition, self._fetch(member, partition, epoch, acks))
            for topic in answer.responses:
                for each in topic.partitions:
                    if each.error_code is not ErrorCode.none:
                        self._connections.forget_leader(TOPIC, partition)
                    for run in each.acquired_records:
                        if is_checked and epoch == 0 and not found:
                            self._check_first(partition, run)
                        found.append((run.first_offset, run.last_offset))
        await self._ask(leader, partition, self._end(member, partition, found))
        self._open.pop((leader, member), None)

    def _check_first(self, partition: int, run: Any) -> None:
        if (run.first_offset, run.delivery_count) != (0, 1):
            raise Violation(
                f"share group {GROUP} begins again in {TOPIC}-{partition} at offset "
                f"{run.first_offset}, delivery {run.delivery_count}"
            )

    def _fetch(self, member: str, partition: int, epoch: int, acks: list[tuple[int, int]]) -> Any:
        build = messages_of(FETCH, 2, "request")
        wanted = build.FetchPartition(
            partition_index=partition, acknowledgement_batches=_batches(build, acks)
        )
        return build.ShareFetchRequest(
            group_id=GROUP,
            member_id=member,
            share_session_epoch=epoch,
            max_wait=200,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=self._random.randrange(1, 8),
            batch_size=8,
            share_acquire_mode=0,
            is_renew_ack=False,
            topics=(build.FetchTopic(topic_id=self._topic_id, partitions=(wanted,)),),
            forgotten_topics_data=(),
        )

    def _end(self, member: str, partition: int, acks: list[tuple[int, int]]) -> Any:
        build = messages_of(ACKNOWLEDGE, 2, "request")
        part = build.AcknowledgePartition(
            partition_index=partition, acknowledgement_batches=_batches(build, acks)
        )
        topics = (build.AcknowledgeTopic(topic_id=self._topic_id, partitions=(part,)),)
        return build.ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=member,
            share_session_epoch=FINAL_EPOCH,
            is_renew_ack=False,
            topics=topics if acks else (),
        )

    async def _ask(self, broker: int, partition: int, request: Any) -> Any:
        try:
            return await self._connections.ask(broker, request, 1_500)
        except NoAnswerError:
            self._connections.forget_leader(TOPIC, partition)
            raise

    async def _ask_coordinator(self, request: Any) -> Any:
        broker = await self._connections.coordinator(GROUP)
        try:
            return await self._connections.ask(broker, request, 1_500)
        except NoAnswerError:
            self._connections.forget_coordinator(GROUP)
            raise

    # Its end.

    async def _change_offsets(self) -> None:
        """Of an empty group; each request may fail or be lost."""
        chance = self._random.random()
        if chance < OFFSETS_DELETED:
            build = messages_of(DELETE_OFFSETS, 0, "request")
            topic = build.DeleteShareGroupOffsetsRequestTopic(topic_name=TOPIC)
            request = build.DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=(topic,))
        elif chance < OFFSETS_DELETED + ALTERED:
            build = messages_of(ALTER_OFFSETS, 0, "request")
            part = build.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=1)
            topic = build.AlterShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=(part,))
            request = build.AlterShareGroupOffsetsRequest(group_id=GROUP, topics=(topic,))
        else:
            return
        await self._ask_coordinator(request)

    async def _delete(self, within_s: float) -> None:
        """Until it is confirmed. Raises Violation if that takes too long."""
        build = messages_of(DELETE_GROUPS, 2, "request")
        request = build.DeleteGroupsRequest(groups_names=(GROUP,))
        until_s = self._cluster.loop.time() + within_s
        why = "nobody was asked"
        while self._cluster.loop.time() < until_s:
            try:
                broker = await self._connections.coordinator(GROUP)
                answer = await self._connections.ask(broker, request, 20_000)
            except NoAnswerError as error:
                why = str(error)
            else:
                code = ErrorCode(answer.results[0].error_code)
                if code in (ErrorCode.none, ErrorCode.group_id_not_found):
                    self.deleted += 1
                    self._cluster.note(f"share group {GROUP} deleted: {code.name}")
                    return
                why = code.name
            self._connections.forget_coordinator(GROUP)
            await asyncio.sleep(RETRY_S)
        raise Violation(f"share group {GROUP} is not deleted after {within_s:.0f} s: {why}")


def _batches(build: Any, acks: list[tuple[int, int]]) -> tuple[Any, ...]:
    return tuple(
        build.AcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=(ACCEPT,)
        )
        for first, last in acks
    )
