"""A share group that is made and deleted again and again (KIP-932), under one name.

In each life a member joins, reads some records, accepts them and leaves; sometimes its share
sessions go on, and keep what their leaders know of the group; sometimes the group's offsets are set
or deleted then (AlterShareGroupOffsets, DeleteShareGroupOffsets); then the group is deleted
(DeleteGroups). While there are faults, nobody knows which request arrives, and when. Once all is
healed, and a deletion is confirmed:

    a new group        is assigned all partitions, and gets through with all records from the first
                       one, which is delivered once, on; a leader that still has the state of a
                       group before may hand out any record until it notices, but no
                       acknowledgement of that holds
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
from simulation.connection import RETRY_S, NoAnswerError
from simulation.replay import loaded
from simulation.share_lives import ShareLives
from simulation.share_requests import (
    LEAVES,
    Run,
    heartbeat,
    parts_of,
    runs_of,
    session_end,
    share_fetch,
)
from simulation.violation import Violation

GROUP: Final = "gone"
DELETE_GROUPS, ALTER_OFFSETS, DELETE_OFFSETS = 42, 91, 92
JOINS_WITHIN_S: Final = 40
"""A deletion may be late (`ottla.coordinator.late_deletions`)."""
READ_WITHIN_S: Final = 60
"""A write that failed is tried again after a while (`ottla.replica.shared_partition`)."""
DELETED_WITHIN_S: Final = 40
LATE_S: Final = 2
"""What was still under way has arrived by then."""
ALTERED: Final = 0.3
OFFSETS_DELETED: Final = 0.3
GOES_ON: Final = 0.4
"""How often a session outlives its member's place in the group."""
SOME: Final = (1, 2, 3)
MANY: Final = (5, 20, 50)
"""Records of one fetch."""
READS_AGAIN: Final = 0.3
"""How often one that did is used again."""


class ShareDeletions:
    """One client does it all, in a process of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._random = Random(f"{cluster.seed} share deletions")
        self._client = ShareLives(cluster, "share-deletions", "10.0.8.1", GROUP, TOPIC)
        self._connections = self._client.connections
        self._topic_id: UUID | None = None
        self._open: dict[tuple[int, str], tuple[int, int, list[Run]]] = {}
        """By broker and member, share sessions that may be there: a partition, the next epoch, and
        which records it has. A leader with one goes on with what it knows of the group."""
        self.deleted = 0
        """Deletions that were confirmed."""

    async def start(self) -> None:
        """Begin the first life."""
        await self._client.start(self._whole_life, NoAnswerError, Violation)

    async def _whole_life(self) -> None:
        await self._life(is_checked=False)
        await self._change_offsets()
        await self._delete(self._cluster.pace.s(5))

    async def settle(self) -> None:
        """Once all is healed: what must hold of two lives and their ends. Raises Violation."""
        await self._client.stop()
        invariants = self._cluster.invariants
        if any(map(invariants.forgiven, (TOPIC, OFFSETS, SHARE_STATES))):
            return  # what was lost may have been the deletion
        await self._delete(DELETED_WITHIN_S)
        await asyncio.sleep(LATE_S)
        await self._delete(DELETED_WITHIN_S)
        for is_checked in (False, True, False, True):
            # The first one of two leaves sessions and records for the second.
            try:
                await self._life(is_checked=is_checked)
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
                if is_checked:
                    await self._read_all(member, partition)
                else:
                    await self._read(member, partition)
                    await self._read_again()
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
            if self._client.is_last:
                break
            await asyncio.sleep(RETRY_S)
        return sorted(assigned)

    async def _beat(self, member: str, epoch: int) -> Any:
        request = heartbeat(GROUP, TOPIC, member, epoch)
        return await self._client.ask_coordinator(request)

    async def _read(self, member: str, partition: int) -> None:
        """Some records of a partition, which are accepted; then the session may end."""
        found: list[Run] = []
        for epoch in range(3):
            leader = await self._connections.leader(TOPIC, partition)
            acks, found = found, []
            answer = await self._fetched(leader, member, partition, epoch, acks)
            for each in parts_of(answer):
                found += runs_of(each.acquired_records)
            self._open[leader, member] = partition, epoch + 1, found
        if self._random.random() >= GOES_ON:
            await self._end(leader, member, partition, found)

    async def _read_again(self) -> None:
        """In a session of a member that has left the group, mostly deleted since."""
        if not self._open or self._random.random() >= READS_AGAIN:
            return
        leader, member = self._random.choice(list(self._open))
        partition, epoch, acks = self._open.pop((leader, member))
        answer = await self._fetched(leader, member, partition, epoch, acks)
        if answer.error_code is ErrorCode.none:
            found = [run for each in parts_of(answer) for run in runs_of(each.acquired_records)]
            self._open[leader, member] = partition, epoch + 1, found

    async def _read_all(self, member: str, partition: int) -> None:
        """All records of a partition that is whole, one session after the other. Raises
        Violation."""
        name = f"share group {GROUP}, {TOPIC}-{partition}"
        end, until_s = self._end_of(partition), self._cluster.loop.time() + READ_WITHIN_S
        accepted = doubtful = refused = 0
        """Up to here; perhaps up to there, as another leader was elected meanwhile."""
        held: list[Any] = []
        leader, epoch = -1, 0
        while accepted < end:
            if self._cluster.loop.time() > until_s:
                raise Violation(f"{name}: at offset {accepted} of {end} after {READ_WITHIN_S} s")
            before, leader = leader, await self._connections.leader(TOPIC, partition)
            if leader != before:
                doubtful = max(doubtful, refused)
                held, epoch = [], 0
            acks, held = held, []
            answer = await self._fetched(leader, member, partition, epoch, runs_of(acks), MANY)
            epoch += 1
            refused = max([refused, *(each.last_offset + 1 for each in acks)])
            if answer.error_code is not ErrorCode.none:
                epoch = 0
                await asyncio.sleep(RETRY_S)
            for each in parts_of(answer):
                if ErrorCode(each.acknowledge_error_code) is ErrorCode.none:
                    for run in acks:
                        if not accepted <= run.first_offset <= max(accepted, doubtful):
                            raise Violation(f"{name}: {run.first_offset} follows on {accepted}")
                        if not accepted and not doubtful and run.delivery_count != 1:
                            raise Violation(f"{name}: begins with delivery {run.delivery_count}")
                        accepted = run.last_offset + 1
                if each.error_code is not ErrorCode.none:
                    self._connections.forget_leader(TOPIC, partition)
                    await asyncio.sleep(RETRY_S)
                held += each.acquired_records
            self._open[leader, member] = partition, epoch, runs_of(held)
        if self._random.random() >= GOES_ON:
            await self._end(leader, member, partition, runs_of(held))

    def _end_of(self, partition: int) -> int:
        """The high watermark, as its leader knows it."""
        state = self._cluster.state(TOPIC, partition)
        node = None if state is None else self._cluster.brokers[state["leader"]].node
        copy = None if node is None else node.partitions.get(TOPIC, partition)
        return 0 if copy is None else int(copy.high_watermark)

    async def _fetched(
        self,
        leader: int,
        member: str,
        partition: int,
        epoch: int,
        accepts: list[Run],
        most: tuple[int, ...] = SOME,
    ) -> Any:
        self._open.setdefault((leader, member), (partition, epoch, []))
        count = self._random.choice(most)
        topic_id = self._topic_id
        request = share_fetch(GROUP, member, topic_id, partition, epoch, accepts, count)
        return await self._client.ask(leader, partition, request)

    async def _end(self, leader: int, member: str, partition: int, accepts: list[Run]) -> None:
        """Accepts these, and ends the session."""
        request = session_end(GROUP, member, self._topic_id, partition, accepts)
        await self._client.ask(leader, partition, request)
        self._open.pop((leader, member), None)

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
        await self._client.ask_coordinator(request)

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
