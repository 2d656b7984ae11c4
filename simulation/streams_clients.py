"""The processes of a Kafka Streams application in a simulated cluster, and how its group must end.

Each process has one or two threads, which are members of the group, in some places static ones
(KIP-345). The next process in a place may have the former one's folder, and with it its id. A
process that hangs is replaced by another, and meets it when it goes on. An operator beside them
makes the source topic again where it was deleted, gives internal topics the partitions that new
ones of the sources require, and removes the group of a former version, once it has no members, as
Apache Kafka wants it for another topology.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

from ottla.controller import layout
from ottla.coordination.tree import TreeNode
from ottla.groups.shard import GroupShard
from ottla.groups.streams.group import GroupState, StreamsGroup
from ottla.groups.streams.offsets import NO_OFFSETS
from ottla.groups.streams.tasks import each
from ottla.shards.partitioning import partition_for
from simulation.broker import Broker
from simulation.cluster import (
    OFFSETS,
    OFFSETS_PARTITIONS,
    STREAMS_INTERNAL,
    STREAMS_SOURCE,
    TOPIC,
    Cluster,
)
from simulation.connection import Connections
from simulation.faults import Fault
from simulation.process import Process
from simulation.replay import loaded
from simulation.streams_describing import (
    ASKS_AGAIN_MS,
    Describer,
    DescriptionReader,
    asks_again_soon,
)
from simulation.streams_descriptions import DescriptionLedger
from simulation.streams_ledger import StreamsLedger, Task
from simulation.streams_members import SAYS_OFFSETS_S, StreamsMember, Thread
from simulation.streams_requests import STREAMS_GROUP
from simulation.streams_states import Folder
from simulation.streams_topology import KEEPS, READS, REPARTITION, Application
from simulation.violation import Violation

PROCESSES: Final = (2, 2, 3)
THREADS: Final = (1, 1, 2)
HEARTBEAT_VERSIONS: Final = (0, 1, 1)
STATIC_SHARE: Final = 0.6
"""Of places; of the processes there, most have an instance id."""
KEEPS_INSTANCE_SHARE: Final = 0.8
KEEPS_FOLDER_SHARE: Final = 0.5
OFFSETS_LOOKS: Final = 12
STOPS_WITHIN_S: Final = 0.8
AWAKE_S: Final = 1.5
"""How long a process goes on beside the one that replaced it, in a full run."""
SOURCE_PARTITIONS: Final = 2
STANDBYS: Final = (0, 1, 2)
RESTS_WITHIN_MS: Final = 40_000
OPERATES_EVERY_S: Final = 1.0
"""In a full run."""
PARTITION: Final = f"{OFFSETS}-{partition_for(STREAMS_GROUP, OFFSETS_PARTITIONS)}"
"""Where the group is kept."""


class StreamsClients:
    """Starts each process, and ends it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._loop = cluster.loop
        random = Random(f"{cluster.seed} streams processes")
        self._threads = [random.choice(THREADS) for _ in range(random.choice(PROCESSES))]
        self._static = [random.random() < STATIC_SHARE for _ in self._threads]
        self._random = random
        self._folders: dict[int, tuple[str, Folder]] = {}
        """By place: the id of its last process, and its folder."""
        self._replaced: list[tuple[Process, list[StreamsMember]]] = []
        """Processes that hang, or did, and for which others were started."""
        self._processes: list[Process | None] = [None] * len(self._threads)
        self._members: list[list[StreamsMember]] = [[] for _ in self._threads]
        self._made = 0
        self._version = 0
        self._standbys = 1
        self._is_resumed = False
        self._source_until_ms = 0
        """The operator makes the source topic again from then on."""
        self._coordinators: list[tuple[int, int, int]] = []
        """Since when, which broker, in which epoch."""
        self._was_there = False
        self._application = Application(cluster.seed)
        self.ledger = StreamsLedger(self._has_led, self._found)
        self.descriptions = DescriptionLedger(
            self._has_led, self._found, cluster.pace.ms(ASKS_AGAIN_MS)
        )
        self._reader = DescriptionReader(
            Connections("describes", cluster.addresses),
            self._application,
            self.descriptions,
            cluster.now_ms,
            cluster.pace,
        )
        self._kills_who_asks_ms = 0
        """How long the next coordinator that asks for a description is to be down."""
        before = cluster.tree_written

        def written(path: str, after: TreeNode | None) -> None:
            before(path, after)
            self._tree_written(path)

        cluster.tree_written = written
        cluster.broker_stepped = self._broker_stepped

    # What the members see.

    def _tree_written(self, path: str) -> None:
        index = int(PARTITION.rpartition("-")[2])
        if path == layout.state_path(OFFSETS, index):
            state = self._cluster.state(OFFSETS, index)
            if state is not None:
                now = self._loop.now_ms, state["leader"], state["leader_epoch"]
                if not self._coordinators or self._coordinators[-1][1:] != now[1:]:
                    self._coordinators.append(now)

    def _has_led(self, broker: int, from_ms: int, to_ms: int) -> bool:
        leader = -1
        for since_ms, leads, _ in self._coordinators:
            if since_ms > to_ms:
                break
            if since_ms >= from_ms:
                return False
            leader = leads
        return leader == broker

    def _found(self, text: str) -> None:
        if not self._cluster.invariants.forgiven(OFFSETS):
            self._cluster.fail(f"streams group: {text}")

    def _broker_stepped(self, broker: Broker) -> None:
        """Notes when the group is removed."""
        for partition in loaded(broker):
            if partition.name == PARTITION:
                was_there = self._was_there
                self._was_there = STREAMS_GROUP in partition.shard.streams.groups
                if was_there and not self._was_there:
                    self.ledger.removed(self._loop.now_ms)
                    self.descriptions.removed(self._loop.now_ms)

    def _refused(self, member: StreamsMember, why: str) -> None:
        self._cluster.note(f"thread {member.thread.number} ends: {why}")
        if "opology updates" in why and self._version == 0:
            self._cluster.fail(f"streams group: the only topology is refused: {why}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While it lasts, coordinators are as a run needs them."""
        with asks_again_soon(self._cluster.pace):
            yield

    def _asked(self, number: int) -> None:
        """A broker asks a member for the description of the topology."""
        down_ms, self._kills_who_asks_ms = self._kills_who_asks_ms, 0
        if down_ms:
            # Not in the member's process, which may end before.
            self._loop.driver.context.run(self._loop.call_soon, self._kill_broker, number, down_ms)

    def _kill_broker(self, number: int, down_ms: int) -> None:
        broker = self._cluster.brokers[number]
        self._cluster.note(f"{broker.name} has asked for a description")
        broker.kill()
        self._loop.call_later(down_ms / 1000, broker.start)

    # Start and end of processes.

    async def start(self) -> None:
        """Create the source topic, and start all processes."""
        cluster = self._cluster
        await cluster.operator.create(STREAMS_SOURCE, SOURCE_PARTITIONS, cluster.factor)
        for index in range(len(self._threads)):
            self._start(index)
        cluster.spawn(self._operate())
        cluster.spawn(self._reader.run())

    def _start(self, index: int) -> None:
        cluster = self._cluster
        self._made += 1
        process = self._processes[index] = Process(f"10.0.8.{self._made}")
        number, random = self._made, self._random
        is_static = self._static[index] and random.random() < KEEPS_INSTANCE_SHARE
        cluster.note(f"streams process {number} starts{' as a static one' * is_static}")
        kept = self._folders.get(index)
        if kept is None or self._is_replaced(kept[0]) or random.random() >= KEEPS_FOLDER_SHARE:
            kept = f"process-{number}", Folder()
        self._folders[index] = process_id, folder = kept
        version = random.choice(HEARTBEAT_VERSIONS)
        self._members[index] = [
            StreamsMember(
                Thread(
                    10 * number + thread,
                    process_id,
                    self._version,
                    f"place-{index}-{thread}" if is_static else None,
                    version,
                ),
                folder,
                self._application,
                cluster.addresses,
                self.ledger,
                Describer(
                    10 * number + thread,
                    self._version,
                    self._application,
                    self.descriptions,
                    Random(f"{cluster.seed} streams {number} {thread} describes"),
                    cluster.pace,
                    self._asked,
                ),
                cluster.now_ms,
                Random(f"{cluster.seed} streams {number} {thread}"),
                cluster.pace,
                self._refused,
            )
            for thread in range(self._threads[index])
        ]
        for member in self._members[index]:
            member.stays = self._is_resumed
            self._loop.start_in(process, member.run)

    def _kill(self, index: int) -> bool:
        process = self._processes[index]
        if process is None:
            return False
        self._end(process, self._members[index])
        self._processes[index], self._members[index] = None, []
        return True

    def _end(self, process: Process, members: list[StreamsMember]) -> None:
        self._cluster.note(f"streams process {process.host.rpartition('.')[2]} is killed")
        self._loop.forget(process)
        self._loop.network.died(process)
        for member in members:
            if member.life is not None:
                self.ledger.ended(member.life)

    def kill_member(self, seed: int, down_s: float) -> None:
        """Kill a process; another one replaces it later."""
        index = seed % len(self._threads)
        if self._kill(index):
            self._loop.call_later(down_s, self._replace, index)

    def _replace(self, index: int) -> None:
        if self._processes[index] is None:
            self._start(index)

    def pause_member(self, seed: int, paused_s: float) -> None:
        """Pause a process for a while."""
        process = self._processes[seed % len(self._threads)]
        if process is not None:
            process.is_paused = True
            self._loop.call_later(paused_s, setattr, process, "is_paused", False)

    def _stop(self, index: int, down_s: float) -> None:
        """A process is stopped, so that its threads leave, and another one replaces it later."""
        process = self._processes[index]
        for member in self._members[index]:
            member.stops = True
        stops_s = self._cluster.pace.s(STOPS_WITHIN_S)
        self._loop.call_later(stops_s, self._end_stopped, index, process, down_s)

    def _end_stopped(self, index: int, process: Process | None, down_s: float) -> None:
        if process is not None and self._processes[index] is process:
            self._kill(index)
            self._loop.call_later(down_s, self._replace, index)

    def _replace_hanging(self, index: int, paused_s: float) -> None:
        """Another process is started for one that is paused; that goes on for a time, and ends."""
        process = self._processes[index]
        if process is None:
            return
        replaced = process, self._members[index]
        self._replaced.append(replaced)
        process.is_paused = True
        for member in replaced[1]:
            member.is_replaced = True
        self._start(index)
        awake_s = self._cluster.pace.s(AWAKE_S)
        self._loop.call_later(paused_s, setattr, process, "is_paused", False)
        self._loop.call_later(paused_s + awake_s, self._end_replaced, replaced)

    def _end_replaced(self, replaced: tuple[Process, list[StreamsMember]]) -> None:
        if replaced in self._replaced:
            self._replaced.remove(replaced)
            self._end(*replaced)

    def _is_replaced(self, process_id: str) -> bool:
        """Whether a process that was replaced, and has not ended, has this id and folder."""
        return any(
            member.thread.process_id == process_id
            for _, members in self._replaced
            for member in members
        )

    def resume_members(self) -> None:
        """Resume all processes, which have the newest version; from now on no thread leaves."""
        self._is_resumed = True
        for replaced in tuple(self._replaced):
            self._end_replaced(replaced)
        for index, process in enumerate(self._processes):
            if process is None:
                self._start(index)
            else:
                process.is_paused = False
            for member in self._members[index]:
                member.stays = True

    # Faults.

    def begin(self, fault: Fault) -> bool:
        """Start a fault that only a streams group has; False for others."""
        cluster, random = self._cluster, Random(fault.seed)
        match fault.kind:
            case "delete internal":
                name = random.choice(STREAMS_INTERNAL)
                if name == REPARTITION:
                    self.ledger.unsure.add(KEEPS)
                cluster.spawn(self._delete(name))
            case "delete source":
                self._source_until_ms = self._loop.now_ms + fault.ms
                cluster.spawn(self._delete(STREAMS_SOURCE))
            case "new application":
                cluster.spawn(self._replace_all(random))
            case "kill who asks":
                self._kills_who_asks_ms = fault.ms
                cluster.spawn(self._replace_all(random))
            case "standbys":
                self._standbys = random.choice(STANDBYS)
                cluster.spawn(self._set_standbys())
            case "replace threads":
                for member in self._members[fault.seed % len(self._threads)]:
                    member.leaves_once = True
            case "stop process":
                self._stop(fault.seed % len(self._threads), fault.ms / 1000)
            case "replace process":
                self._replace_hanging(fault.seed % len(self._threads), fault.ms / 1000)
            case "cut process":
                process = self._processes[fault.seed % len(self._threads)]
                if process is not None:
                    hosts = process.host, cluster.brokers[fault.one].host
                    self._loop.network.cut(*hosts)
                    self._loop.call_later(fault.ms / 1000, self._loop.network.join, *hosts)
            case _:
                return False
        return True

    async def _delete(self, topic: str) -> None:
        if self._count(topic):
            await self._cluster.operator.delete(topic)

    async def _replace_all(self, random: Random) -> None:
        """One process after the other."""
        self._version += 1
        self.ledger.unsure |= {READS, KEEPS}
        for index in range(len(self._threads)):
            self._kill(index)
            self._replace(index)
            await asyncio.sleep(self._cluster.pace.s(random.random()))

    async def _set_standbys(self) -> None:
        await self._cluster.operator.set_group_config(
            STREAMS_GROUP, streams_num_standby_replicas=str(self._standbys)
        )

    # The operator.

    async def _operate(self) -> None:
        while True:
            await asyncio.sleep(self._cluster.pace.s(OPERATES_EVERY_S))
            if self._loop.now_ms >= self._source_until_ms and not self._count(STREAMS_SOURCE):
                await self._cluster.operator.create(
                    STREAMS_SOURCE, SOURCE_PARTITIONS, self._cluster.factor
                )
            await self._add_partitions()
            if self._has_former_topology():
                await self._cluster.operator.delete_group(STREAMS_GROUP)

    def _has_former_topology(self) -> bool:
        """Whether the group has no members, and the topology of a former version."""
        group = self._group()
        topology = None if group is None or group.members else group.topology
        return topology is not None and topology.epoch < self._version

    async def _add_partitions(self) -> None:
        """To internal topics that have fewer than the sources require."""
        wanted = self._application.repartitions or self._read_count()
        for name in STREAMS_INTERNAL:
            if 0 < self._count(name) < wanted:
                await self._cluster.operator.add_partitions(name, wanted)

    def _count(self, topic: str) -> int:
        """How many partitions it has; 0 if it is not there."""
        nodes = self._cluster.tree.nodes
        node = nodes.get(layout.topic_path(topic))
        if node is None or layout.deleted_topic_path(topic) in nodes:
            return 0
        return len(layout.read_topic(topic, node.data)[1])

    def _read_count(self) -> int:
        return max(self._count(TOPIC), self._count(STREAMS_SOURCE))

    # The end.

    async def settle(self) -> None:
        """Wait until all tasks are where they belong. Raises Violation."""
        cluster = self._cluster
        await self._set_standbys()
        until_ms = self._loop.now_ms + RESTS_WITHIN_MS
        while (why := self._unsettled()) is not None:
            if self._loop.now_ms > until_ms:
                if cluster.invariants.forgiven(OFFSETS):
                    return
                raise Violation(
                    f"the streams group is not at rest after {RESTS_WITHIN_MS // 1000} s: {why}"
                )
            await asyncio.sleep(cluster.pace.s(0.3))
        await self._check_offsets()
        await self._reader.read()

    async def _check_offsets(self) -> None:
        """What members say from now on is known as soon as it is answered. Raises Violation."""
        coordinator = self._coordinators[-1]
        for _ in range(OFFSETS_LOOKS):
            await asyncio.sleep(self._cluster.pace.s(SAYS_OFFSETS_S) / 3)
            group = self._group()
            if group is None or self._coordinators[-1] != coordinator:
                return
            why = self._unknown_offsets(group)
            if why is not None:
                raise Violation(f"streams group: {why}")

    def _group(self) -> StreamsGroup | None:
        """As its coordinator has it."""
        broker = self._cluster.brokers.get(self._cluster.coordinator_of(STREAMS_GROUP))
        for partition in [] if broker is None else loaded(broker):
            if isinstance(partition.shard, GroupShard) and partition.name == PARTITION:
                return partition.shard.streams.groups.get(STREAMS_GROUP)
        return None

    def _unsettled(self) -> str | None:
        group = self._group()
        if group is None:
            return "no coordinator has it"
        if group.topology is None or group.topology.epoch != self._version:
            return f"it has not the topology of version {self._version}"
        if group.state is not GroupState.STABLE:
            return f"it is {group.state.value}: {group.soft.compared and group.soft.compared[3][3]}"
        members = {member.member_id: member for one in self._members for member in one}
        if set(group.members) != set(members):
            return f"it has the members {sorted(group.members)}, and {sorted(members)} are there"
        for member_id, known in group.members.items():
            member = members[member_id]
            active = frozenset(each(known.assigned.active))
            standby = frozenset(each(known.assigned.standby))
            if member.target is not None or member.has != (active, standby):
                return f"thread {member.thread.number} has {member.has}, not {(active, standby)}"
            if member.epoch != known.epoch:
                return (
                    f"thread {member.thread.number} is in epoch {member.epoch}, not {known.epoch}"
                )
        return self._misplaced(group) or self._unknown_offsets(group) or self._undescribed(group)

    def _undescribed(self, group: StreamsGroup) -> str | None:
        """The topology has no description, although there is a member that can describe it."""
        is_large = not self._application.is_describable(self._version)
        known = group.undescribable_epoch if is_large else group.described_epoch
        members = (member for one in self._members for member in one)
        if known == self._version or all(each.thread.heartbeat_version == 0 for each in members):
            return None
        return f"topology {self._version} is not described, and {known} is"

    def _unknown_offsets(self, group: StreamsGroup) -> str | None:
        """What members said of their states, and the coordinator does not know."""
        for member in (member for one in self._members for member in one if not member.is_asking):
            known = group.soft.task_offsets.get(member.member_id, NO_OFFSETS)
            if tuple(known) != tuple(member.states.heard):
                number, said = member.thread.number, member.states.heard
                return f"thread {number} said {said}, and it knows {known}"
        return None

    def _misplaced(self, group: StreamsGroup) -> str | None:
        """What of the assignment is not as it must be."""
        reads = range(self._read_count())
        keeps = range(self._count(REPARTITION))
        active: dict[Task, str] = {}
        standby: dict[Task, list[str]] = {}
        for member in group.members.values():
            for task in each(member.assigned.active):
                if active.setdefault(task, member.process_id) != member.process_id:
                    return f"two processes have task {task}"
            for task in each(member.assigned.standby):
                standby.setdefault(task, []).append(member.process_id)
        wanted = {*((READS, number) for number in reads), *((KEEPS, number) for number in keeps)}
        if set(active) != wanted:
            return f"the tasks {sorted(active)} are assigned, not {sorted(wanted)}"
        copies = min(self._standbys, len(self._threads) - 1)
        for number in keeps if copies else ():
            found = standby.pop((KEEPS, number), [])
            if len({*found, active[KEEPS, number]}) != copies + 1 or len(found) != copies:
                return (
                    f"task {KEEPS}_{number} has standby tasks in {found} and is active in"
                    f" {active[KEEPS, number]}, with {copies} wanted"
                )
        return f"there are other standby tasks: {standby}" if standby else None
