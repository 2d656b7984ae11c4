"""Bugs to plant in the shipped classes, as patches: the simulation must find each of them.

First bugs of the deciders, then bugs of the drivers that carry out the decisions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

from ottla.cluster import controller, metadata_applier, plans
from ottla.cluster.alter_partition_sender import AlterPartitionSender
from ottla.cluster.broker_watch import BrokerWatch
from ottla.cluster.forwarding import ControllerForwarding
from ottla.cluster.membership import Membership
from ottla.cluster.metadata_applier import MetadataApplier
from ottla.cluster.metadata_log import MetadataLog
from ottla.controller.alter_partition import ANY_EPOCH, ProposedIsr, alter_partitions
from ottla.controller.broker_changes import brokers_changed
from ottla.controller.image import (
    BrokerAppeared,
    ClusterImage,
    DirectoryChanged,
    PartitionsChanged,
    PartitionState,
)
from ottla.controller.layout import DIRECTORIES
from ottla.coordination.tree import Coordination, Operation
from ottla.coordinator.coordinator_log import LogMarker
from ottla.coordinator.coordinator_partition import CoordinatorPartition
from ottla.coordinator.loading import Loading
from ottla.coordinator.partition_log import PartitionLog
from ottla.coordinator.transaction_verifier import TransactionVerifier
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.heartbeat import commit_error
from ottla.groups.offsets import commit
from ottla.groups.offsets.pending import PendingOffsets
from ottla.groups.shard import GroupShard
from ottla.protocol.errors import ErrorCode
from ottla.replica.fetch_wait import FetchWait
from ottla.replica.group_flush import GroupFlush
from ottla.replica.offset_waits import OffsetWaits
from ottla.replica.partition_follower import PartitionFollower
from ottla.replica.replica_fetcher import ReplicaFetcher
from ottla.replication.follower import Continue, FollowerState, Truncate
from ottla.replication.leader import InSyncChange, Leader
from simulation.faults import Fault
from simulation.pace import Pace


class Patch(Protocol):
    """The part of pytest's `monkeypatch` that is used here."""

    def setattr(self, target: Any, name: str, value: Any) -> None:
        """Replace an attribute until the end of a test."""


# Decisions of leaders and followers.


def high_watermark_ignores_one(patch: Patch) -> None:
    """The high watermark waits for all in-sync replicas but one."""
    right = Leader.advance

    def advance(self: Leader, end_offset: int, now_ms: int, min_isr: int) -> bool:
        known = self.maximal_isr
        self.maximal_isr = tuple(sorted(known)[:-1])
        try:
            return right(self, end_offset, now_ms, min_isr)
        finally:
            self.maximal_isr = known

    patch.setattr(Leader, "advance", advance)


def high_watermark_waits_for_nobody(patch: Patch) -> None:
    """The leader treats records that only it has as committed."""

    def advance(self: Leader, end_offset: int, now_ms: int, min_isr: int) -> bool:
        moved = end_offset > self.high_watermark
        self.high_watermark = max(end_offset, self.high_watermark)
        return moved

    patch.setattr(Leader, "advance", advance)


def the_maximal_set_is_ignored(patch: Patch) -> None:
    """The leader assumes that its proposal succeeds and no longer waits for a removed replica."""
    right = Leader.in_sync_change

    def in_sync_change(self: Leader, end_offset: int, now_ms: int) -> InSyncChange | None:
        change = right(self, end_offset, now_ms)
        if change is not None:
            self.maximal_isr = tuple(broker for broker, _ in change.isr)
        return change

    patch.setattr(Leader, "in_sync_change", in_sync_change)


def anybody_joins(patch: Patch) -> None:
    """A follower may join the ISR no matter how far behind it is."""

    def may_join(self: Leader, broker_id: int) -> bool:
        return self.in_flight is None and broker_id not in self.state.isr

    patch.setattr(Leader, "may_join", may_join)


def divergence_is_ignored(patch: Patch) -> None:
    """A follower ignores a diverging epoch and does not truncate its log."""
    right = FollowerState.on_result

    def on_result(self: FollowerState, *given: Any) -> Any:
        decision = right(self, *given)
        return Continue() if isinstance(decision, Truncate) else decision

    patch.setattr(FollowerState, "on_result", on_result)


# Decisions of the controller.


def anybody_is_elected(patch: Patch) -> None:
    """Elections treat every replica as in sync."""

    def elect(live: Any, image: ClusterImage, config: Any, **rest: Any) -> Any:
        for topic in list(image.topics.values()):
            states = tuple(
                each._replace(isr=each.replicas) if each.leader not in live else each
                for each in topic.partitions
            )
            image.topics[topic.name] = replace(topic, partitions=states)
        return brokers_changed(live, image, config, **rest)

    patch.setattr(controller, "brokers_changed", elect)


def lost_disks_are_forgotten(patch: Patch) -> None:
    """The controller records a lost disk but does not act on it."""

    def forgetful(live: Mapping[int, Any], image: ClusterImage, *given: Any, **rest: Any) -> Any:
        blind = {number: replace(broker, directory_id=None) for number, broker in live.items()}
        plan = brokers_changed(blind, image, *given, **rest)
        right = brokers_changed(live, image, *given, **rest)
        noted = tuple(each for each in right.writes if each.path.startswith(DIRECTORIES))
        told = tuple(
            each for each in right.deltas if isinstance(each, BrokerAppeared | DirectoryChanged)
        )
        others = tuple(each for each in plan.deltas if not isinstance(each, BrokerAppeared))
        return replace(plan, writes=plan.writes + noted, deltas=others + told)

    patch.setattr(controller, "brokers_changed", forgetful)


def elections_have_no_delta(patch: Patch) -> None:
    """Leaders are elected in the tree, but no broker is notified."""

    def silent(*given: Any, **rest: Any) -> Any:
        return replace(brokers_changed(*given, **rest), deltas=())

    patch.setattr(controller, "brokers_changed", silent)


def partition_epochs_are_not_compared(patch: Patch) -> None:
    """A proposed ISR is accepted with any partition epoch."""

    def alter(
        broker: int,
        epoch: int,
        proposals: Sequence[ProposedIsr],
        image: ClusterImage,
        *given: Any,
        **rest: Any,
    ) -> Any:
        now = []
        for each in proposals:
            topic = image.topic_by_id(each.topic_id)
            if topic is not None and each.partition < len(topic.partitions):
                at = topic.partitions[each.partition].partition_epoch
                now.append(each._replace(partition_epoch=at))
            else:
                now.append(each)
        return alter_partitions(broker, epoch, now, image, *given, **rest)

    patch.setattr(controller, "alter_partitions", alter)


def broker_epochs_are_not_compared(patch: Patch) -> None:
    """A proposal may refer to an earlier incarnation of a broker (as before KIP-903)."""

    def alter(
        broker: int, epoch: int, proposals: Sequence[ProposedIsr], *given: Any, **rest: Any
    ) -> Any:
        anybody = [
            each._replace(isr=tuple((number, ANY_EPOCH) for number, _ in each.isr))
            for each in proposals
        ]
        return alter_partitions(broker, epoch, anybody, *given, **rest)

    patch.setattr(controller, "alter_partitions", alter)


# Replica fetchers, waits, flushes.


def follower_keeps_its_tail(patch: Patch) -> None:
    """A follower does not truncate records that its leader does not have."""
    patch.setattr(PartitionFollower, "truncate_to", lambda *_: None)


def fetchers_keep_the_old_epoch(patch: Patch) -> None:
    """A fetcher continues a partition in the leader epoch that it learned first."""
    right = ReplicaFetcher.follow

    def follow(self: ReplicaFetcher, partition: Any) -> None:
        if (partition.topic_id, partition.index) not in self._followed:
            right(self, partition)

    patch.setattr(ReplicaFetcher, "follow", follow)


def waits_end_too_early(patch: Patch) -> None:
    """Any advance of the high watermark completes all waiting requests."""
    right = OffsetWaits.reached
    patch.setattr(OffsetWaits, "reached", lambda self, _: right(self, 1 << 62))


def fetches_are_not_woken(patch: Patch) -> None:
    """A partition that changes does not wake the fetches that wait for it."""
    patch.setattr(FetchWait, "changed", lambda *_: None)


def nothing_is_flushed(patch: Patch) -> None:
    """An append is acknowledged before it is flushed, despite flush.messages=1."""

    async def reached(self: GroupFlush[Any], offset: int, timeout_ms: int) -> None:
        return None

    patch.setattr(GroupFlush, "reached", reached)


# The sender of AlterPartition.


def isr_changes_are_not_sent(patch: Patch) -> None:
    """The leader changes the ISR, but does not notify the controller."""
    patch.setattr(AlterPartitionSender, "propose", lambda *_: None)


def open_proposals_are_dropped(patch: Patch) -> None:
    """A proposal whose request got no answer is not sent again."""
    right = AlterPartitionSender._ask

    async def ask(self: AlterPartitionSender, changes: list[InSyncChange]) -> Any:
        answers = await right(self, changes)
        if answers is None:
            for change in changes:
                self._waiting.pop((change.topic_id, change.index), None)
        return answers

    patch.setattr(AlterPartitionSender, "_ask", ask)


# Membership and the controller's tenure.


def nobody_registers_again(patch: Patch) -> None:
    """A broker whose session expired stays out of the cluster."""

    async def sleep(self: Membership) -> None:
        await asyncio.sleep(3_600)

    patch.setattr(Membership, "_new_session", sleep)


def the_watch_is_blind(patch: Patch) -> None:
    """The controller does not notice that brokers join and leave."""

    async def nothing(self: BrokerWatch) -> None:
        return None

    patch.setattr(BrokerWatch, "_check_brokers", nothing)


def writes_are_not_fenced(patch: Patch) -> None:
    """A deposed controller can still write."""

    async def write(coordination: Coordination, writes: Sequence[Operation], _: int) -> None:
        for chunk in plans.chunks(writes, coordination.limits):
            await coordination.multi(chunk)

    for module in (plans, controller):
        patch.setattr(module, "write_fenced", write)


def half_done_plans_are_refused_at_once(patch: Patch) -> None:
    """A client gets its answer before the next controller has decided what becomes of the plan."""
    patch.setattr(controller.Controller, "_answer", controller.Controller.carry_out)


# Metadata: the controller's log of deltas, and how brokers apply them.


def deltas_are_lost(patch: Patch) -> None:
    """The controller's log returns no deltas but claims that they are complete."""
    since = MetadataLog.since

    async def forgetful(self: MetadataLog, version: int) -> dict[str, Any]:
        found = await since(self, version)
        return {**found, "deltas": []} if "deltas" in found else found

    patch.setattr(MetadataLog, "since", forgetful)


def role_changes_are_missed(patch: Patch) -> None:
    """A broker learns of new topics, but not of new leaders."""
    apply = MetadataApplier.apply

    async def deaf(self: MetadataApplier, delta: Any) -> None:
        if not isinstance(delta, PartitionsChanged):
            await apply(self, delta)

    patch.setattr(MetadataApplier, "apply", deaf)


def a_former_incarnation_is_believed(patch: Patch) -> None:
    """A broker accepts leadership that was given to its earlier incarnation."""

    def believe(state: PartitionState, *_: Any) -> PartitionState:
        return state

    patch.setattr(metadata_applier, "in_this_incarnation", believe)


# Consumer groups.


def generations_are_not_compared(patch: Patch) -> None:
    """A member may commit in a generation that has ended."""

    def error(group: ClassicGroup, member: str, instance: str | None, generation: int) -> ErrorCode:
        return commit_error(group, member, instance, group.generation if generation >= 0 else -1)

    patch.setattr(commit, "commit_error", error)


# Forwarding, and the coordinator runtime.


def the_first_controller_is_asked(patch: Patch) -> None:
    """Requests are forwarded to the first controller for ever."""
    right = ControllerForwarding._ask
    first: dict[ControllerForwarding, int] = {}

    async def ask(self: ControllerForwarding, *given: Any) -> Any:
        image = self._image()
        if image.controller_id < 0:
            return await right(self, *given)
        known = first.setdefault(self, image.controller_id)
        if known == self._broker_id:
            return await right(self, *given)
        now, image.controller_id = image.controller_id, known
        try:
            asking = right(self, *given)
            return await asking
        finally:
            image.controller_id = now

    patch.setattr(ControllerForwarding, "_ask", ask)


def groups_do_not_wait_for_replicas(patch: Patch) -> None:
    """The coordinator responds before its records are committed."""

    async def at_once(self: CoordinatorPartition[Any], offset: int) -> None:
        return None

    patch.setattr(CoordinatorPartition, "_commit_error", at_once)


def groups_are_not_loaded(patch: Patch) -> None:
    """A new coordinator does not load the records of the former one."""
    patch.setattr(Loading, "_apply", lambda *_: None)


# Offsets in transactions.


def transactional_offsets_count_at_once(patch: Patch) -> None:
    """The groups' shard takes the records of transactions for plain ones."""
    right = GroupShard.apply

    def apply(self: GroupShard, record: Any, offset: int, timestamp_ms: int, _: Any) -> None:
        right(self, record, offset, timestamp_ms, None)

    patch.setattr(GroupShard, "apply", apply)


def aborted_offsets_stay_pending(patch: Patch) -> None:
    """An abort marker leaves the offsets pending: UNSTABLE_OFFSET_COMMIT for ever."""
    right = PendingOffsets.end

    def end(self: PendingOffsets, producer_id: int, is_commit: bool) -> Any:
        return right(self, producer_id, is_commit) if is_commit else {}

    patch.setattr(PendingOffsets, "end", end)


def aborted_offsets_are_committed(patch: Patch) -> None:
    """Every marker commits."""
    right = PendingOffsets.end

    def end(self: PendingOffsets, producer_id: int, is_commit: bool) -> Any:
        return right(self, producer_id, True)

    patch.setattr(PendingOffsets, "end", end)


def unstable_offsets_are_returned(patch: Patch) -> None:
    """OffsetFetch ignores require_stable."""
    patch.setattr(PendingOffsets, "has_group", lambda *_: False)


def markers_are_not_loaded(patch: Patch) -> None:
    """A new coordinator loads the records of transactions without their markers."""
    right = PartitionLog.read_all

    def read_all(self: PartitionLog) -> Any:
        return (each for each in right(self) if not isinstance(each, LogMarker))

    patch.setattr(PartitionLog, "read_all", read_all)


def one_group_is_enough(patch: Patch) -> None:
    """The coordinator of the transaction forgets all but one of its partitions."""
    right = TransactionVerifier.verify

    async def verify(
        self: TransactionVerifier, name: str, producer: Any, partitions: Any, asked: Any
    ) -> Any:
        if next(iter(partitions)).partition % 2:
            return dict.fromkeys(partitions, ErrorCode.none)
        return await right(self, name, producer, partitions, asked)

    patch.setattr(TransactionVerifier, "verify", verify)


class Sighting(NamedTuple):
    """A seed that finds a bug, with given faults or those of the seed."""

    seed: int = 0
    faults: tuple[Fault, ...] | None = None
    pace: Pace = Pace.FULL


# It is tried first.
PLANTED: Final[dict[Callable[[Patch], None], Sighting]] = {
    high_watermark_ignores_one: Sighting(55),
    high_watermark_waits_for_nobody: Sighting(),
    the_maximal_set_is_ignored: Sighting(1, (Fault(3_000, "stall leave", 2, 1, 100, 0),)),
    anybody_joins: Sighting(2),
    divergence_is_ignored: Sighting(6),
    anybody_is_elected: Sighting(),
    lost_disks_are_forgotten: Sighting(2, (Fault(5_000, "lose disk", 1, 2, 100, 0),)),
    elections_have_no_delta: Sighting(),
    partition_epochs_are_not_compared: Sighting(1, (Fault(3_000, "stall join", 2, 1, 100, 1),)),
    broker_epochs_are_not_compared: Sighting(1, (Fault(3_000, "stall join", 2, 1, 100, 0),)),
    follower_keeps_its_tail: Sighting(1),
    fetchers_keep_the_old_epoch: Sighting(5),
    waits_end_too_early: Sighting(),
    fetches_are_not_woken: Sighting(),
    nothing_is_flushed: Sighting(1),
    isr_changes_are_not_sent: Sighting(),
    open_proposals_are_dropped: Sighting(),
    nobody_registers_again: Sighting(1),
    the_watch_is_blind: Sighting(),
    writes_are_not_fenced: Sighting(0, (Fault(3_000, "stall tree", 2, 1, 100, 0),)),
    half_done_plans_are_refused_at_once: Sighting(25),
    deltas_are_lost: Sighting(),
    role_changes_are_missed: Sighting(),
    a_former_incarnation_is_believed: Sighting(2, (Fault(5_000, "lose disk", 1, 2, 100, 0),)),
    generations_are_not_compared: Sighting(),
    the_first_controller_is_asked: Sighting(10),
    groups_do_not_wait_for_replicas: Sighting(),
    groups_are_not_loaded: Sighting(),
}

IN_TRANSACTIONS: Final[dict[Callable[[Patch], None], Sighting]] = {
    transactional_offsets_count_at_once: Sighting(),
    aborted_offsets_stay_pending: Sighting(),
    aborted_offsets_are_committed: Sighting(),
    unstable_offsets_are_returned: Sighting(6),
    markers_are_not_loaded: Sighting(),
    one_group_is_enough: Sighting(),
}
"""Found by runs with transactional clients."""
