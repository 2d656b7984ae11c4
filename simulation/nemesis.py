"""Applies faults and operator requests to a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

from ottla.controller import layout
from ottla.coordination.tree import Delete
from ottla.protocol.errors import ErrorCode
from simulation.cluster import OFFSETS, SHARE_STATES, TOPIC, Cluster
from simulation.faults import Fault
from simulation.log_clients import LogClients
from simulation.log_faults import LogFaults
from simulation.share_clients import ShareClients
from simulation.stall import Stalls
from simulation.streams_clients import StreamsClients
from simulation.transaction_faults import TransactionFaults
from simulation.tree_session import TREE
from simulation.workload import Workload
from simulation.writers import Writers

MAX_PARTITIONS: Final = 3
ROLL_STEP_MAX_MS: Final = 4_000
MAX_AHEAD_MS: Final = 5_000
"""Of a wall clock, and behind; it stays wrong to the end of the run."""


class Nemesis:
    """Starts each fault at its time and schedules its end."""

    def __init__(
        self,
        cluster: Cluster,
        workload: Workload,
        writers: Writers | None = None,
        of_logs: LogClients | None = None,
        shares: ShareClients | None = None,
        streams: StreamsClients | None = None,
    ) -> None:
        """`writers` write in transactions. With the clients of logs, there are faults of logs. With
        a share group or a streams group, members of this group are killed and paused."""
        self._cluster = cluster
        self._workload = workload
        self._shares = shares
        self._streams = streams
        self._members = shares or streams or workload
        self._loop = cluster.loop
        self._stalls = Stalls(cluster, self.begin)
        self._of_transactions = None if writers is None else TransactionFaults(cluster, writers)
        self.of_logs = None
        if of_logs is not None:
            assert writers is not None
            self.of_logs = LogFaults(cluster, workload, writers, of_logs)
        self._topics = 0
        self._is_rolling = False

    async def run(self, faults: Sequence[Fault]) -> None:
        """Start each fault at its time."""
        for fault in faults:
            await asyncio.sleep(max(0.0, fault.at_ms / 1000 - self._loop.time()))
            self.begin(fault)

    def heal(self) -> None:
        """End all cuts, pauses and stalls; start every broker and member that is down."""
        self._cluster.note("all is healed")
        self._stalls.end()
        self._is_rolling = False
        if self._of_transactions is not None:
            self._of_transactions.end()
        if self.of_logs is not None:
            self.of_logs.end()
        self._loop.network.heal()
        for broker in self._cluster.brokers.values():
            broker.resume()
            broker.start()
        self._workload.resume_members()
        if self._members is not self._workload:
            self._members.resume_members()

    def begin(self, fault: Fault) -> None:  # noqa: C901, PLR0912
        """Start a fault now."""
        cluster = self._cluster
        cluster.note(f"FAULT {fault}")
        for special in (self._of_transactions, self.of_logs, self._streams):
            if special is not None and special.begin(fault):
                return
        broker = cluster.brokers[fault.one]
        end_s = fault.ms / 1000
        match fault.kind:
            case "crash":
                broker.kill()
                self._loop.call_later(end_s, broker.start)
            case "pause":
                broker.pause()
                self._loop.call_later(end_s, broker.resume)
            case "cut":
                self._cut(broker.host, cluster.brokers[fault.other].host, end_s)
            case "cut tree":
                self._cut(broker.host, TREE, end_s)
            case "expire":
                self._expire(fault.one)
            case "leave":
                cluster.spawn(self._restart(fault.one, end_s))
            case "lose disk" | "power":
                self._lose(fault, end_s)
            case "power alone":
                leader = None if self.of_logs is None else self.of_logs.leader_alone()
                if leader is not None:
                    self._lose(fault._replace(kind="power", one=leader), end_s)
            case "depose":
                self._depose()
            case "stall tree":
                self._stalls.stall_write(fault)
            case "stall join":
                self._stalls.stall_join(fault)
            case "stall leave":
                self._stalls.stall_leave(fault)
            case "delete":
                cluster.spawn(self._create_and_delete(fault, end_s))
            case "roll":
                cluster.spawn(self._roll())
            case "jump clock":
                ahead_ms = Random(fault.seed).randint(-MAX_AHEAD_MS, MAX_AHEAD_MS)
                cluster.note(f"the wall clock of {fault.one} is {ahead_ms} ms ahead")
                cluster.set_clock(fault.one, ahead_ms)
            case "kill member":
                self._members.kill_member(fault.seed, end_s)
            case "pause member":
                self._members.pause_member(fault.seed, end_s)
            case _:
                cluster.spawn(self._operate(fault))

    async def _operate(self, fault: Fault) -> None:
        """Send an operator's request."""
        cluster, operator = self._cluster, self._cluster.operator
        match fault.kind:
            case "reassign":
                names = [TOPIC, TOPIC, OFFSETS if self._shares is None else SHARE_STATES]
                topic = names[fault.seed % len(names)]
                count = len([name for name in cluster.states() if name.startswith(f"{topic}-")])
                if count:
                    random = Random(fault.seed)
                    replicas = random.sample(sorted(cluster.brokers), cluster.factor)
                    await operator.reassign(topic, {random.randrange(count): tuple(replicas)})
            case "drain":
                more = () if self._shares is None else (SHARE_STATES,)
                await operator.drain(fault.one, (TOPIC, OFFSETS, *more))
            case "preferred":
                await operator.elect()
            case "unclean":
                if cluster.is_unclean:
                    await operator.elect({TOPIC: range(cluster.partitions)}, unclean=True)
            case "add partition":
                count = cluster.partitions + 1
                if count <= MAX_PARTITIONS and await operator.add_partitions(TOPIC, count):
                    # Two requests at the same time may both ask for the same count.
                    while cluster.partitions < count:
                        self._workload.add_partition()
            case _:
                raise AssertionError(fault.kind)

    def _cut(self, one: str, other: str, end_s: float) -> None:
        self._loop.network.cut(one, other)
        self._loop.call_later(end_s, self._loop.network.join, one, other)

    def _expire(self, number: int) -> None:
        process = self._cluster.brokers[number].process
        for session in list(self._cluster.host.sessions.values()):
            if session.process is process:
                self._cluster.host.expire(session.number)

    def _lose(self, fault: Fault, end_s: float) -> None:
        cluster, broker = self._cluster, self._cluster.brokers[fault.one]
        if not cluster.others_in_sync(fault.one):
            return
        broker.kill()
        if fault.seed % 3 == 0:
            self._crash_in_sync_with(fault)
        if fault.kind == "lose disk":
            broker.lose_disk()
            cluster.invariants.disk_lost(fault.one, cluster.tree.last_change)
        else:
            cut = cluster.synced.cut_unsynced(broker.folder, Random(fault.seed))
            for name in cluster.synced.empty_unsynced(broker.folder, Random(fault.seed)):
                cluster.note(f"{broker.name} lost the content of {name}")
            cluster.logs_cut(broker, cut)
        self._loop.call_later(end_s, broker.start)

    def _crash_in_sync_with(self, fault: Fault) -> None:
        """Crash all in-sync peers of a broker that loses records, and restart them later: the
        cluster must wait for the records that they have.
        """
        states = [state for state in self._cluster.states().values() if state is not None]
        isr = states[fault.seed // 3 % len(states)]["isr"]
        if fault.one in isr:
            for each in isr:
                if each != fault.one:
                    self.begin(fault._replace(kind="crash", one=each, ms=fault.ms + 1_500))

    async def _restart(self, number: int, down_s: float) -> None:
        """Stop a broker with a controlled shutdown; start it later."""
        broker = self._cluster.brokers[number]
        if broker.is_up and not broker.is_paused:
            await broker.stop()
            await asyncio.sleep(down_s)
            broker.start()

    async def _roll(self) -> None:
        """A rolling restart: each broker once the cluster is healthy, or after a timeout."""
        if self._is_rolling:
            return
        self._is_rolling = True
        for number in self._cluster.brokers:
            until_s = self._loop.time() + self._cluster.pace.ms(ROLL_STEP_MAX_MS) / 1000
            while self._cluster.unhealed() is not None and self._loop.time() < until_s:
                await asyncio.sleep(0.2)
            if not self._is_rolling:
                return  # all is healed
            await self._restart(number, 0.1)
        self._is_rolling = False

    def _depose(self) -> None:
        """Delete the controller's node, as an operator may: another controller is elected."""
        tree = self._cluster.tree
        if layout.CONTROLLER in tree.nodes:
            session = tree.connect()
            tree.multi(session, [Delete(layout.CONTROLLER)])
            tree.expire(session)

    async def _create_and_delete(self, fault: Fault, lasts_s: float) -> None:
        """Create another topic, write to it, delete it: logs vanish during flushes and fetches.

        Sometimes the controller's session expires in the middle of the deletion.
        """
        self._topics += 1
        name = f"short-{self._topics}"
        operator = self._cluster.operator
        await operator.create(name, 2, self._cluster.factor)
        stop = self._workload.write_to(name)
        self._cluster.short_lived = name
        await asyncio.sleep(lasts_s)
        self._cluster.short_lived = None
        if fault.seed % 3 == 0:
            self._stalls.interrupt_deletion(fault)
        code = await operator.delete(name)
        if code is not None and code is not ErrorCode.request_timed_out:
            await self._check_decided(name, code)
        stop()

    async def _check_decided(self, name: str, code: ErrorCode) -> None:
        """After an answer the topic is there or not, and stays so, unless another request about it
        is under way.
        """
        nodes = self._cluster.tree.nodes
        is_there = layout.topic_path(name) in nodes
        if layout.deleted_topic_path(name) in nodes:
            self._cluster.fail(f"{name} is half deleted after the answer {code.name}")
        await asyncio.sleep(2)
        if name in self._cluster.operator.unanswered:
            return
        if is_there != (layout.topic_path(name) in nodes):
            self._cluster.fail(f"{name} was deleted after the answer {code.name}")
