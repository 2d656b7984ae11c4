"""Delays single messages until they are stale, to test epochs and fencing.

A stalled controller write to the tree: the controller is deposed meanwhile, and the epoch of the
next controller fences the write. A stalled proposal that a follower joins the ISR: before it
arrives, the follower either

- dies and returns with an empty disk: the broker epoch fences the proposal (KIP-903); or
- joins through a retry of the proposal and is removed again because it lags: the partition epoch
  fences the proposal.

A deletion of a topic that takes several writes to the tree: the controller's session expires
between two of them. The client is answered when the next controller has finished it.

A stalled proposal that a follower leaves the ISR: until the response arrives, the follower can
still be elected, so nothing may be committed without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.controller import layout
from ottla.coordination.tree import Create, Operation, SetData
from ottla.protocol.frames import read_request_body, read_request_header
from ottla.protocol.versions import ALTER_PARTITION
from simulation.cluster import LAG_MAX_MS, SESSION_TIMEOUT_MS, Cluster
from simulation.faults import Fault
from simulation.process import Process

RESENT_AFTER_MS: Final = 5_300
"""After this time without a response a leader proposes again."""
MAX_INTERRUPTED_MS: Final = 10
"""A deletion of a small topic in parts takes about this long."""
_KEY: Final = ALTER_PARTITION.to_bytes(2, "big")


class Stalls:
    """At most one stall of each kind waits for its message."""

    def __init__(self, cluster: Cluster, begin: Callable[[Fault], None]) -> None:
        """`begin` starts another fault now."""
        self._cluster = cluster
        self._begin = begin
        self._join: Fault | None = None
        self._leave: Fault | None = None
        self._write: Fault | None = None
        self._deletion: Fault | None = None
        self._has_ended = False
        self._registered_after_ms = cluster.pace.ms(SESSION_TIMEOUT_MS) + 1_200
        """A broker with a new disk can register only after its former session has expired."""
        self._lags_within_ms = cluster.pace.ms(LAG_MAX_MS) * 3 // 2 + 800
        cluster.loop.network.stall_s = self._proposal_s
        cluster.host.stall_s = self._write_s

    def stall_join(self, fault: Fault) -> None:
        """Stall the next proposal that lets `fault.one` join."""
        self._join = fault
        # What is to join must first be out.
        self._begin(fault._replace(kind="crash", ms=30))

    def stall_leave(self, fault: Fault) -> None:
        """Stall the next proposal that removes a replica."""
        self._leave = fault
        cut = fault._replace(kind="cut", ms=self._lags_within_ms + 1_000)
        leaders = {state["leader"] for state in self._cluster.states().values() if state}
        for leader in sorted(leaders - {fault.one, -1}):
            self._begin(cut._replace(other=leader))

    def stall_write(self, fault: Fault) -> None:
        """Stall the next write that lets a replica join, and depose the controller meanwhile."""
        self._write = fault
        # What is to join must first be out.
        self._begin(fault._replace(kind="crash", ms=30))

    def interrupt_deletion(self, fault: Fault) -> None:
        """Expire the session of the controller that writes the next deletion, in the middle."""
        self._deletion = fault

    def end(self) -> None:
        """Stall no more messages, and begin no fault that belongs to a stall."""
        self._join = self._leave = self._write = self._deletion = None
        self._has_ended = True

    def _write_s(self, process: Process, writes: Sequence[Operation]) -> float:
        deletion = self._deletion
        if deletion is not None and any(map(_is_mark, writes)):
            self._deletion = None
            self._cluster.note(f"{process.host} deletes a topic: its session expires")
            number = self._cluster.number_of(process)
            delay_ms = deletion.seed % MAX_INTERRUPTED_MS
            self._later(delay_ms, deletion._replace(kind="expire", one=number))
        fault = self._write
        if fault is None or not any(map(self._lets_join, writes)):
            return 0.0
        self._write = None
        self._cluster.note(f"a write of {process.host} to the tree is stalled")
        self._later(5, fault._replace(kind="depose"))
        cluster, held_ms = self._cluster, 100 + fault.seed % 8 * 100
        # Until then the former controller does not know that it is deposed.
        cluster.stalled_until_ms = max(cluster.stalled_until_ms, cluster.loop.now_ms + held_ms)
        return held_ms / 1000

    def _lets_join(self, write: Operation) -> bool:
        """Whether the write lets a replica join. Only then a lost fence shows: the next controller
        does not write the same by itself."""
        if not isinstance(write, SetData) or not write.path.endswith("/state"):
            return False
        node = self._cluster.tree.nodes.get(write.path)
        if node is None:
            return False  # a former controller writes, and the next one deleted the topic
        before = json.loads(node.data)
        after = json.loads(write.data)
        return bool(before["leader"] == after["leader"] and len(before["isr"]) < len(after["isr"]))

    def _proposal_s(self, sender: Process, data: bytes) -> float:
        if (self._join is None and self._leave is None) or data[4:6] != _KEY:
            return 0.0
        frame = memoryview(data)[4:]
        try:
            request = read_request_body(read_request_header(frame), frame)
        except ValueError:
            return 0.0  # other bytes that look similar
        leader, (joining, leaving) = request.broker_id, self._changes(request)
        if self._leave is not None and leaving:
            held_ms = 500 + self._leave.seed % 1_000
            self._leave = None
            self._cluster.note(f"the proposal of {leader} to leave {leaving} out is stalled")
            return held_ms / 1000
        fault = self._join
        if fault is None or fault.one not in joining or fault.one == leader:
            return 0.0
        self._join = None
        self._cluster.note(f"the proposal of {leader} that {fault.one} joins is stalled")
        return self._stall_join(fault, leader) / 1000

    def _stall_join(self, fault: Fault, leader: int) -> int:
        """Start what happens during the stall; return its length."""
        cut = fault._replace(kind="cut", other=leader)
        if fault.seed % 2 == 0:
            # Until it has registered with a new disk, after the end of its former session. If it
            # were not cut off, it would have replicated everything by then.
            self._later(0, fault._replace(kind="lose disk", ms=40, seed=1))
            self._later(0, cut._replace(ms=self._registered_after_ms + 100))
            return self._registered_after_ms
        self._later(RESENT_AFTER_MS, cut._replace(ms=self._lags_within_ms + 500))
        return RESENT_AFTER_MS + self._lags_within_ms

    def _changes(self, request: Any) -> tuple[list[int], list[int]]:
        """The brokers that a request adds to, and removes from, the ISR of any partition."""
        joining: list[int] = []
        leaving: list[int] = []
        for topic in request.topics:
            for each in topic.partitions:
                proposed = [one.broker_id for one in each.new_isr_with_epochs]
                for known in self._known(each.partition_index, request.broker_id):
                    joining += [one for one in proposed if one not in known]
                    leaving += [one for one in known if one not in proposed]
        return joining, leaving

    def _known(self, index: int, leader: int) -> list[list[int]]:
        """The ISRs of the partitions with this number that the broker leads."""
        return [
            state["isr"]
            for name, state in self._cluster.states().items()
            if state is not None
            and state["leader"] == leader
            and int(name.rpartition("-")[2]) == index
        ]

    def _later(self, delay_ms: int, fault: Fault) -> None:
        loop = self._cluster.loop
        loop.driver.context.run(loop.call_later, delay_ms / 1000, self._begin_unless_ended, fault)

    def _begin_unless_ended(self, fault: Fault) -> None:
        if not self._has_ended:
            self._begin(fault)


def _is_mark(write: Operation) -> bool:
    """Whether the write begins the deletion of a topic."""
    return isinstance(write, Create) and write.path.startswith(f"{layout.DELETED_TOPICS}/")
