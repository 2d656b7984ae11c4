"""The clients of a simulated cluster: producers and a reader of each partition, and a group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

from faults.history import Elected, Event, Synced

from ottla.coordination.tree import TreeNode
from ottla.shards.partitioning import partition_for
from simulation.clients import PlainValues, Reader
from simulation.cluster import OFFSETS, OFFSETS_PARTITIONS, TOPIC, Cluster
from simulation.consumers import Member
from simulation.process import Process
from simulation.producer import Producer
from simulation.violation import Violation


@dataclass(slots=True)
class History:
    """The clients' history in the form of `faults`: shared events, the readers', the group's."""

    common: list[Event] = field(default_factory=list)
    readers: list[tuple[int, Event]] = field(default_factory=list)
    """Each event with the length of `common` at its time."""
    group: list[tuple[int, Event]] = field(default_factory=list)

    def of_readers(self) -> list[Event]:
        return merged(self.common, self.readers)

    def of_group(self) -> list[Event]:
        return merged(self.common, self.group)


class Workload:
    """Starts each client in its own process, and ends it."""

    def __init__(
        self, cluster: Cluster, plan: Random, member: Callable[..., Member] = Member
    ) -> None:
        """`member`: what the members of the group are."""
        self._member = member
        self.history = History()
        self.producers: list[Producer] = []
        self.readers: list[Reader] = []
        self.members: list[Member | None] = [None] * min(
            plan.choice((2, 2, 3)), cluster.size.members
        )
        self._static = plan.random() < 0.3
        self._processes: list[Process | None] = [None] * len(self.members)
        self._cluster = cluster
        self._loop = cluster.loop
        self._members_made = 0
        self._others = 0
        cluster.tree_written = self._tree_written

    @property
    def generations(self) -> int:
        """The number of the group's generations that completed SyncGroup."""
        events = (event for _, event in self.history.group)
        return len({event.generation for event in events if isinstance(event, Synced)})

    @property
    def is_committing(self) -> bool:
        """Whether a member waits for the answer to a commit."""
        return any(member is not None and member.unanswered for member in self.members)

    # The history.

    def common(self, event: Event) -> None:
        """An event of producers, or of the cluster."""
        self._cluster.observe(event)
        self.history.common.append(event)

    def by_reader(self, event: Event) -> None:
        """An event of a reader outside the group."""
        self._cluster.observe(event)
        self.history.readers.append((len(self.history.common), event))

    def by_member(self, event: Event) -> None:
        """An event of a member of the group."""
        self._cluster.observe(event)
        self.history.group.append((len(self.history.common), event))

    def _tree_written(self, path: str, after: TreeNode | None) -> None:
        parts = path.split("/")
        if after is not None and path.endswith("/state") and parts[3] == TOPIC:
            state = self._cluster.state(TOPIC, int(parts[5]))
            assert state is not None
            self.common(
                Elected(
                    self._loop.now_ms,
                    int(parts[5]),
                    state["leader"],
                    state["leader_epoch"],
                    tuple(state["isr"]),
                )
            )

    # Events for the invariants. A violation must not be raised in a client.

    def acknowledged(
        self, topic: str, index: int, offset: int, crc: int, topic_id: UUID | None = None
    ) -> None:
        """See `simulation.clients.Observer`."""
        invariants = self._cluster.invariants
        self._guarded(partial(invariants.acknowledged, topic, index, offset, crc, topic_id))

    def read(self, topic: str, index: int, offset: int, next_offset: int, crc: int) -> None:
        """See `simulation.clients.Observer`."""
        invariants = self._cluster.invariants
        self._guarded(partial(invariants.read, topic, index, offset, next_offset, crc))

    def latest(self, topic: str, index: int, offset: int, epoch: int) -> None:
        """See `simulation.clients.Observer`."""
        self._guarded(partial(self._cluster.invariants.latest, topic, index, offset, epoch))

    def epoch_of(self, topic: str, index: int, offset: int, crc: int) -> int:
        """See `simulation.clients.Observer`."""
        return self._cluster.invariants.epoch_of(topic, index, offset, crc)

    def is_deposed(self, group: str, broker: int) -> bool:
        """See `simulation.clients.Observer`."""
        offsets = OFFSETS, partition_for(group, OFFSETS_PARTITIONS)
        state, node = self._cluster.state(*offsets), self._cluster.brokers[broker].node
        partition = None if node is None else node.partitions.get(*offsets)
        if state is None or partition is None:
            return False
        return bool(partition.leader_epoch < state["leader_epoch"])

    def _guarded(self, check: Callable[[], None]) -> None:
        try:
            check()
        except Violation as error:
            self._cluster.fail(str(error))

    # Start and end of clients.

    def start(self) -> None:
        """Start the initial clients."""
        for index in range(self._cluster.partitions):
            self._start_clients(index)
        for index in range(len(self.members)):
            self._start_member(index)

    def add_partition(self) -> None:
        """Start the clients of a new partition, like those of the others."""
        index, self._cluster.partitions = self._cluster.partitions, self._cluster.partitions + 1
        self._start_clients(index)

    def _start_clients(self, index: int) -> None:
        for _ in range(self._cluster.size.producers):
            number = len(self.producers) + 1
            producer = self._producer(number, TOPIC, index, self.common)
            self.producers.append(producer)
            self._loop.start_in(Process(f"10.0.1.{number}"), producer.run)
        reader = self.reader(len(self.readers) + 1, index, self.by_reader)
        self.readers.append(reader)
        self._loop.start_in(Process(f"10.0.4.{reader.number}"), reader.run)

    def _producer(
        self,
        number: int,
        topic: str,
        index: int,
        note: Callable[[Event], None],
        topic_id: UUID | None = None,
    ) -> Producer:
        values = PlainValues(
            number,
            (topic, index),
            self._cluster.addresses,
            note,
            self._cluster.now_ms,
            Random(f"{self._cluster.seed} producer {number}"),
            self,
            topic_id,
        )
        return Producer(values, number)

    def reader(self, number: int, index: int, note: Callable[[Event], None]) -> Reader:
        """Make a reader of one partition without starting it."""
        addresses, now_ms = self._cluster.addresses, self._cluster.now_ms
        return Reader(number, (TOPIC, index), addresses, note, now_ms, self)

    def write_to(self, topic: str) -> Callable[[], None]:
        """Write to another topic without a history; return a function that stops it."""
        return self.write_alone(topic, None)[1]

    def write_alone(self, topic: str, topic_id: UUID | None) -> tuple[Producer, Callable[[], None]]:
        """The same: the producer, which may name the topic by its id, and what stops it."""
        self._others += 1
        process = Process(f"10.0.5.{self._others}")
        producer = self._producer(100 + self._others, topic, 0, lambda event: None, topic_id)
        self._loop.start_in(process, producer.run)
        return producer, lambda: self._end(process)

    def _end(self, process: Process) -> None:
        self._loop.forget(process)
        self._loop.network.died(process)

    # The group.

    def _start_member(self, index: int) -> None:
        self._members_made += 1
        # A static member is the same consumer after a restart.
        number = index + 1 if self._static else self._members_made
        member = self.members[index] = self._member(
            number,
            TOPIC,
            self._cluster.addresses,
            self.by_member,
            self._cluster.now_ms,
            Random(f"{self._cluster.seed} member {self._members_made}"),
            lambda: self._cluster.partitions,
            self,
            self._cluster.pace,
            f"instance-{index}" if self._static else None,
        )
        process = self._processes[index] = Process(f"10.0.6.{self._members_made}")
        self._cluster.note(f"member {number} of the group starts")
        self._loop.start_in(process, member.run)

    def kill_member(self, seed: int, down_s: float) -> None:
        """Kill a member; another one replaces it later."""
        index = seed % len(self.members)
        process, member = self._processes[index], self.members[index]
        if process is None or member is None:
            return
        self._cluster.note(f"member {member.number} of the group is killed")
        if member.unanswered is not None:
            member.unanswered()
        self._end(process)
        self._processes[index] = self.members[index] = None
        self._loop.call_later(down_s, self._replace_member, index)

    def _replace_member(self, index: int) -> None:
        if self._processes[index] is None:
            self._start_member(index)

    def pause_member(self, seed: int, paused_s: float) -> None:
        """Pause a member for a while."""
        process = self._processes[seed % len(self.members)]
        if process is not None:
            process.is_paused = True
            self._loop.call_later(paused_s, setattr, process, "is_paused", False)

    def resume_members(self) -> None:
        """Resume all members; none leaves from now on."""
        for index, process in enumerate(self._processes):
            if process is None:
                self._start_member(index)
            else:
                process.is_paused = False
        for member in self.members:
            assert member is not None
            member.stays = True


def merged(common: list[Event], own: list[tuple[int, Event]]) -> list[Event]:
    """Both histories in one, each event where it happened."""
    events: list[Any] = []
    taken = 0
    for position, event in own:
        events += common[taken:position]
        taken = position
        events.append(event)
    return [*events, *common[taken:]]
