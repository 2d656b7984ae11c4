"""The members of a share group of a simulated cluster, and what must hold of its records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from random import Random
from typing import Any, Final

from faults.history import Elected

from ottla.groups.shard import GroupShard
from ottla.replica.shared_partition import Handed, SharedPartition
from ottla.share.stored import ShareKey
from simulation.cluster import OFFSETS, SHARE_LIMIT, SHARE_LOCK_MS, SHARE_STATES, TOPIC, Cluster
from simulation.dead_letters import LETTERS, LetterCheck
from simulation.process import Process
from simulation.replay import loaded
from simulation.share_ledger import ShareLedger
from simulation.share_members import SHARE_GROUP, ShareMember
from simulation.violation import Violation
from simulation.workload import Workload

MEMBERS: Final = (1, 2, 2, 3)
RESTS_WITHIN_MS: Final = 40_000


class ShareClients:
    """Starts each member in its own process, and ends it."""

    def __init__(self, cluster: Cluster, workload: Workload, *, letters: bool) -> None:
        """`letters`: the group has a topic of dead letters."""
        self._cluster = cluster
        self._workload = workload
        self._loop = cluster.loop
        count = Random(f"{cluster.seed} share members").choice(MEMBERS)
        self._members: list[ShareMember | None] = [None] * count
        self._processes: list[Process | None] = [None] * count
        self._made = 0
        self._sessions = 0
        self.ledger = ShareLedger(SHARE_LIMIT, SHARE_LOCK_MS, self._has_led, self._found)
        self._letters = LetterCheck(cluster, self.ledger) if letters else None

    # What the members see.

    def _has_led(self, partition: int, broker: int, from_ms: int, to_ms: int) -> bool:
        """Whether this broker alone led the partition, by the tree, all the time."""
        leader, epoch = -1, -1
        for event in self._workload.history.common:
            if not isinstance(event, Elected) or event.partition != partition:
                continue
            if event.at_ms > to_ms:
                break
            if event.at_ms >= from_ms and event.leader_epoch != epoch:
                return False
            leader, epoch = event.leader, event.leader_epoch
        return leader == broker

    def _is_forgiven(self, partition: int) -> bool:
        """Lost disks may have taken records with them, or what the group said of them."""
        forgiven = self._cluster.invariants.forgiven
        return partition in forgiven(TOPIC) or bool(forgiven(SHARE_STATES) or forgiven(OFFSETS))

    def _found(self, partition: int, text: str) -> None:
        if not self._is_forgiven(partition):
            self._cluster.fail(f"share group, {TOPIC}-{partition}: {text}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While it lasts, the ledger hears of all records that brokers hand out."""
        right = SharedPartition.hand_out
        ledger = self.ledger

        async def hand_out(self: SharedPartition, *given: Any) -> Handed:
            handed = await right(self, *given)
            for each in handed.acquired:
                offsets = range(each.first, each.last + 1)
                ledger.acquired(self.key.partition, offsets, each.delivery_count)
            return handed

        setattr(SharedPartition, "hand_out", hand_out)  # noqa: B010 - mypy takes it for another type
        try:
            with nullcontext() if self._letters is None else self._letters.watching():
                yield
        finally:
            setattr(SharedPartition, "hand_out", right)  # noqa: B010

    # Start and end of members.

    async def start(self) -> None:
        """Start the first members; the group begins at the earliest record."""
        settings = {"share_auto_offset_reset": "earliest"}
        if self._letters is not None:
            await self._letters.create()
            settings["errors_deadletterqueue_topic_name"] = LETTERS
        await self._cluster.operator.set_group_config(SHARE_GROUP, **settings)
        await asyncio.sleep(0.2)  # until all brokers know it
        for index in range(len(self._members)):
            self._start(index)

    def _new_session(self) -> int:
        self._sessions += 1
        return self._sessions

    def _start(self, index: int) -> None:
        self._made += 1
        cluster = self._cluster
        member = self._members[index] = ShareMember(
            self._made,
            TOPIC,
            cluster.addresses,
            self.ledger,
            cluster.now_ms,
            Random(f"{cluster.seed} share member {self._made}"),
            self._workload,
            cluster.pace,
            self._new_session,
        )
        process = self._processes[index] = Process(f"10.0.7.{self._made}")
        cluster.note(f"share member {self._made} starts")
        self._loop.start_in(process, member.run)

    def kill_member(self, seed: int, down_s: float) -> None:
        """Kill a member; another one replaces it later."""
        index = seed % len(self._members)
        process, member = self._processes[index], self._members[index]
        if process is None or member is None:
            return
        self._cluster.note(f"share member {member.number} is killed")
        self._loop.forget(process)
        self._loop.network.died(process)
        self._processes[index] = self._members[index] = None
        self._loop.call_later(down_s, self._replace, index)

    def _replace(self, index: int) -> None:
        if self._processes[index] is None:
            self._start(index)

    def pause_member(self, seed: int, paused_s: float) -> None:
        """Pause a member for a while."""
        process = self._processes[seed % len(self._members)]
        if process is not None:
            process.is_paused = True
            self._loop.call_later(paused_s, setattr, process, "is_paused", False)

    def resume_members(self) -> None:
        """Resume all members; from now on none leaves, and each accepts all that it gets."""
        for index, process in enumerate(self._processes):
            if process is None:
                self._start(index)
            else:
                process.is_paused = False
        for member in self._members:
            assert member is not None
            member.stays = True

    # The end.

    async def settle(self) -> None:
        """Wait until the group is through with all records. Raises Violation."""
        cluster = self._cluster
        until_ms = self._loop.now_ms + RESTS_WITHIN_MS
        while (why := self._unfinished()) is not None:
            if self._loop.now_ms > until_ms:
                if cluster.invariants.forgiven(OFFSETS) or cluster.invariants.forgiven(
                    SHARE_STATES
                ):
                    return
                raise Violation(
                    f"the share group is not at rest after {RESTS_WITHIN_MS // 1000} s: {why}"
                )
            await asyncio.sleep(cluster.pace.s(0.3))
        for index in range(cluster.partitions):
            lost = self.ledger.lost(index, self._end_of(index)[1])
            if lost and not self._is_forgiven(index):
                raise Violation(
                    f"share group, {TOPIC}-{index}: nobody has accepted or rejected offsets {lost},"
                    " and they were not delivered often enough to be archived"
                )
        if self._letters is not None:
            kept = [each for each in range(cluster.partitions) if not self._is_forgiven(each)]
            self._letters.check(kept)

    def _end_of(self, index: int) -> tuple[int, int]:
        """Where the group is with the partition, -1 if nobody knows, and where it ends."""
        state = self._cluster.state(TOPIC, index)
        node = None if state is None else self._cluster.brokers[state["leader"]].node
        partition = None if node is None else node.partitions.get(TOPIC, index)
        if node is None or partition is None or state is None:
            return -1, 0
        topic = node.image.topic(TOPIC)
        topic_id = None if topic is None else topic.topic_id
        if topic_id is None:
            return -1, partition.high_watermark
        key = ShareKey(SHARE_GROUP, topic_id, index)
        shared = node.shared_partitions._shared.get(key)
        shares = None if shared is None or not shared.is_current else shared._shares
        return -1 if shares is None else shares.start_offset, partition.high_watermark

    def _unfinished(self) -> str | None:
        cluster = self._cluster
        for index in range(cluster.partitions):
            if index in cluster.invariants.forgiven(TOPIC):
                continue
            start, end = self._end_of(index)
            if start < end:
                return f"it is at offset {start} of {end} in {TOPIC}-{index}"
        return self._unassigned()

    def _unassigned(self) -> str | None:
        broker = self._cluster.brokers.get(self._cluster.coordinator_of(SHARE_GROUP))
        groups = [
            partition.shard.share.groups[SHARE_GROUP]
            for partition in ([] if broker is None else loaded(broker))
            if isinstance(partition.shard, GroupShard)
            and SHARE_GROUP in partition.shard.share.groups
        ]
        if not groups:
            return "no coordinator has it"
        (group,) = groups
        assigned: set[int] = set()
        for member in group.members.values():
            if member.epoch != group.epoch:
                return f"member {member.member_id} is in epoch {member.epoch} of {group.epoch}"
            for numbers in member.assigned.values():
                assigned |= numbers
        if assigned != set(range(self._cluster.partitions)):
            return f"only the partitions {sorted(assigned)} are assigned"
        alive = {each.member_id for each in self._members if each is not None}
        if set(group.members) != alive:
            return f"it has the members {sorted(group.members)}, and {sorted(alive)} are there"
        return None
