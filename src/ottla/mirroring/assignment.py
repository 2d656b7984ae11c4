"""The partitions that the group has given to this instance, until it mirrors them: they begin at
their positions, which may not be stable yet, and without one at the source's first offset.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Final

from ottla.client.admin.offsets import end_offsets, first_offsets
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import events
from ottla.mirroring.beginnings import beginnings
from ottla.mirroring.clusters import SideClient, id_of
from ottla.mirroring.events import Event, Tell
from ottla.mirroring.group_member import GroupMember
from ottla.mirroring.lost_positions import LostPositions
from ottla.mirroring.position import Origin, Position
from ottla.mirroring.share import Share
from ottla.mirroring.target_producer import MAX_POSITIONS
from ottla.mirroring.target_writer import TargetWriter
from ottla.mirroring.topic_plan import TopicPlan

STABLE_WITHIN_S: Final = 1.0
WAITING_NOTE_S: Final = 5.0

LeftOut = Collection[tuple[str, str | None]]
"""Topics that are not mirrored on, with the source's id: names at the target."""


class Assignment:
    """For one loop, which owns all of these. `share` gets the partitions whose positions are
    known. `source_cluster`: its id.
    """

    def __init__(
        self,
        source: SideClient,
        target: SideClient,
        member: GroupMember,
        writer: TargetWriter,
        lost: LostPositions,
        share: Share,
        tell: Tell,
        source_cluster: str,
    ) -> None:
        self._source = source
        self._target = target
        self._member = member
        self._writer = writer
        self._lost = lost
        self._share = share
        self._tell = tell
        self._source_cluster = source_cluster
        self.waiting: set[TopicPartition] = set()
        """Held, but their position is not known yet."""
        self._out_waiting: set[TopicPartition] = set()
        """Held, but left out, which their positions may not say yet."""
        self._waiting_since_s = 0.0

    @property
    def is_waiting(self) -> bool:
        return bool(self.waiting or self._out_waiting)

    def missing(self, plan: TopicPlan, out: LeftOut) -> set[TopicPartition]:
        """Held partitions that the source has, and that are not mirrored yet."""
        return {
            each
            for each in self._member.shares - self._share.committed.keys()
            if each.topic in plan.mirrored
            and each.partition < plan.mirrored[each.topic].partitions
            and (each.topic, plan.mirrored[each.topic].id) not in out
        }

    def begin(self, plan: TopicPlan, out: LeftOut) -> None:
        """The group has given or taken partitions."""
        self.waiting = self.missing(plan, out)
        names = {name for name, _ in out}
        self._out_waiting = {each for each in self._member.shares if each.topic in names}
        self._out_waiting -= self.waiting
        self._waiting_since_s = time.monotonic()

    def find(self, plan: TopicPlan, out: LeftOut) -> bool:
        """Whether `share` has them now: their positions are stable. Raises TransactionFailed and
        ClientError.
        """
        # The plan may be another one than at the assignment.
        self.waiting &= self.missing(plan, out)
        wanted = sorted(self.waiting | self._out_waiting)
        if not wanted:
            return False
        found = self._member.positions(wanted, STABLE_WITHIN_S)
        if found is None:
            self._note_waiting()
            return False
        with self._target.asked():
            there = self._target.metadata(sorted({each.topic for each in wanted})).topics
        ids = {
            each: id_of(there[each.topic])
            for each in wanted
            if each.topic in there and each.partition in there[each.topic].partitions
        }
        taken, marked, fresh = beginnings(ids, found, plan.mirrored, self._out_waiting)
        lost = self._lost.found(fresh, ids, plan.mirrored) if fresh else {}
        if lost:
            found |= lost
            taken, marked, fresh = beginnings(ids, found, plan.mirrored, self._out_waiting)
            marked |= {each: taken[each] for each in lost if each in taken}
        if marked:
            self._writer.commit(marked, {}, {}, lambda: None)
        for each, position in taken.items():
            self._share.take(each, plan.mirrored[each.topic].name, position)
        if fresh:
            self._begin_with(fresh, plan, ids)
        self.waiting.clear()
        self._out_waiting.clear()
        return True

    def _note_waiting(self) -> None:
        if time.monotonic() - self._waiting_since_s > WAITING_NOTE_S:
            self._waiting_since_s = time.monotonic()
            text = (
                "Waiting for the positions at the target: a transaction of another instance has "
                "not ended, or the target does not answer ..."
            )
            self._tell(Event(events.WAITING, text))

    def _begin_with(
        self,
        fresh: list[TopicPartition],
        plan: TopicPlan,
        ids: Mapping[TopicPartition, str | None],
    ) -> None:
        """Commits where the mirror begins, before it writes the first record."""
        topics = plan.mirrored
        names = {each.topic: topics[each.topic].name for each in fresh}
        sources = {each: TopicPartition(names[each.topic], each.partition) for each in fresh}
        with self._source.asked():
            firsts = first_offsets(self._source, list(sources.values()))
        positions = {}
        for each in fresh:
            clusters = (self._source_cluster, *topics[each.topic].mirrored_from)
            origin = Origin(topics[each.topic].id, ids[each], clusters)
            positions[each] = Position(firsts[sources[each]], origin)
        with self._target.asked():
            starts = end_offsets(self._target, fresh)
        for begin in range(0, len(fresh), MAX_POSITIONS):
            some = fresh[begin : begin + MAX_POSITIONS]
            self._writer.commit(
                {each: positions[each] for each in some},
                names,
                {each: starts[each] for each in some},
                lambda: None,
            )
        for each, position in positions.items():
            self._share.take(each, names[each.topic], position)
