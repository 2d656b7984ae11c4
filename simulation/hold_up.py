"""A proposal of a new in-sync set that is held up on its way, while the world moves on.

The stories for which proposals carry epochs. A follower is about to join, and before its leader's
proposal arrives it

- dies, and is back with an empty disk: its broker epoch tells (KIP-903); or
- has joined by the same proposal, sent again, and been left out again because it lags: the
  partition epoch tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.replication.leader import InSyncChange
from simulation.faults import Fault
from simulation.process import SESSION_MS

if TYPE_CHECKING:
    from simulation.world import World

_RESENT_AFTER_MS = 1300


class HoldUp:
    """Waits for a proposal that lets `fault.one` join, and makes one of the stories of it."""

    def __init__(self, world: World, fault: Fault) -> None:
        self._world = world
        self._fault = fault
        self._until_ms = -1
        self._proposal: InSyncChange | None = None

    def delay_ms(self, leader: int, change: InSyncChange) -> int:
        """How long this proposal, each time it is sent, stays on its way."""
        now_ms, follower = self._world.schedule.now_ms, self._fault.one
        if self._proposal is None:
            topic = self._world.brokers[leader].image.topic_by_id(change.topic_id)
            known = None if topic is None else topic.partitions[change.index]
            joins = follower in {broker for broker, _ in change.isr}
            if known is None or follower in known.isr or not joins or follower == leader:
                return 0
            self._proposal = change
            return self._begin(leader)
        loses_disk = self._fault.seed % 2 == 0
        return max(0, self._until_ms - now_ms) if change == self._proposal and loses_disk else 0

    def _begin(self, leader: int) -> int:
        world, fault = self._world, self._fault
        world.note(f"the proposal that {fault.one} joins is held up")
        if fault.seed % 2 == 0:
            # Its registration under another disk waits for the end of its former session.
            held_ms = 700 if world.probes else SESSION_MS + 700
            world.begin(fault._replace(kind="lose disk", ms=40))
            # Else it has copied all again by then.
            world.begin(fault._replace(kind="cut", other=leader, ms=held_ms + 100))
        else:
            held_ms = 7000
            cut = fault._replace(kind="cut", other=leader, ms=held_ms)
            world.schedule.after(_RESENT_AFTER_MS, lambda: world.begin(cut))
        self._until_ms = world.schedule.now_ms + held_ms
        return held_ms
