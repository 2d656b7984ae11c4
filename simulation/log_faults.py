"""Faults that only runs with faults of logs have: what happens to the logs, and to their disks.

- A follower stops, DeleteRecords passes its end, it returns, is killed, and leads.
- A leader dies with records that only it has, returns, cuts them off, stops in order, and leads.
- Records are deleted, also those of open transactions.
- A compacted partition moves to other brokers, whose copies have its gaps.
- A topic is deleted, made again and written to, and its brokers are killed.
- The broker of a partition with one replica, or one of several, loses power.
- A sync fails once.
- A topic is deleted while the controller is deposed or cut off between its writes.

Each is a script of several steps. A step that does not come about in time ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any, Final
from uuid import UUID

from ottla.controller import layout
from ottla.coordination.tree import Operation
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versions import FETCH
from ottla.records.build import build_batch
from ottla.records.record import Record
from simulation.batches import produce
from simulation.broker import FIRST_WALL_MS, Broker
from simulation.cluster import ALONE, KEYED, WRITTEN, Cluster
from simulation.connection import Connections
from simulation.faults import FIRST_MS, LAST_MS, Fault
from simulation.log_clients import LogClients
from simulation.process import Process
from simulation.producer import Producer
from simulation.replicas import values_of
from simulation.tree_session import TREE
from simulation.violation import Violation
from simulation.workload import Workload
from simulation.writers import Writers

KINDS: Final = (
    "outrun",
    "outrun",
    "cut and stop",
    "cut and stop",
    "delete records",
    "move compacted",
    "recreate",
    "recreate",
    "power alone",
    "power alone",
    "power",
    "fail sync",
    "fail sync",
    "cut deletion",
)
MAX_COUNT: Final = 4
STEP_S: Final = 8.0
"""How long a step may take in a full run."""
POLL_S: Final = 0.005
LAGS_S: Final = 1.6
"""How long replicas fetch nothing in a full run: they stay in sync."""
_FETCH: Final = FETCH.to_bytes(2, "big")
MIN_RECORDS: Final = 6


def draw_log_faults(random: Random, brokers: int) -> tuple[Fault, ...]:
    """In order of time; see `simulation.faults`."""
    faults = []
    for _ in range(random.randrange(1, MAX_COUNT + 1)):
        one, other = random.sample(range(1, brokers + 1), 2)
        at_ms, ms = random.randrange(FIRST_MS, LAST_MS - 3_000), random.randrange(20, 2_000)
        faults.append(Fault(at_ms, random.choice(KINDS), one, other, ms, random.randrange(1 << 30)))
    return tuple(sorted(faults))


class _EndedError(Exception):
    """The script ends here: a step did not come about, or all is healed."""


class LogFaults:
    """Begins these faults."""

    def __init__(
        self,
        cluster: Cluster,
        workload: Workload,
        writers: Writers,
        clients: LogClients,
    ) -> None:
        self._cluster = cluster
        self._workload = workload
        self._writers = writers
        self._keyed_pause = clients.keyed.pause
        self._connections = Connections("plain producer", cluster.addresses)
        self._hosts = frozenset(each.host for each in cluster.brokers.values())
        self._has_ended = False
        self._topics = 0
        self._to_cut: Random | None = None
        """The next write of a deletion is met by a fault that this one chooses."""
        self.incarnations: dict[str, tuple[UUID, int]] = {}
        """Of each topic that was made again: its id, and the number of its only producer."""
        self._fetches_until_s = 0.0
        """Replicas fetch nothing until then."""
        self._stall_writes_s = cluster.host.stall_s
        cluster.host.stall_s = self._write_s
        self._stall_messages_s = cluster.loop.network.stall_s
        cluster.loop.network.stall_s = self._message_s

    def begin(self, fault: Fault) -> bool:
        """Start a fault now; False if it is of another kind."""
        random = Random(fault.seed)
        match fault.kind:
            case "outrun":
                self._run(self._outrun(random))
            case "cut and stop":
                self._run(self._cut_and_stop(random))
            case "delete records":
                self._run(self._delete_records((WRITTEN, 0), random))
            case "move compacted":
                self._run(self._move(KEYED, random))
            case "recreate":
                self._run(self._recreate(random))
            case "fail sync":
                self._fail_sync(fault, random)
            case "cut deletion":
                self._run(self._delete_cut(random))
            case _:
                return False
        return True

    def end(self) -> None:
        """Every script ends at its present step, and what it holds up goes on."""
        self._has_ended = True
        self._to_cut = None
        self._cluster.synced.fail_no_more()
        self._writers.pause(is_paused=False)
        self._keyed_pause(is_paused=False)

    def leader_alone(self) -> int | None:
        """The broker of the partition with one replica."""
        state = self._cluster.state(ALONE, 0)
        return None if state is None or state["leader"] < 0 else int(state["leader"])

    # Scripts.

    def _run(self, script: Any) -> None:
        async def run() -> None:
            try:
                await script
            except _EndedError:
                pass
            except Violation as error:
                self._cluster.fail(str(error))

        self._cluster.spawn(run())

    async def _until(self, is_so: Callable[[], bool]) -> None:
        cluster = self._cluster
        until_s = cluster.loop.time() + cluster.pace.s(STEP_S)
        while not is_so():
            if cluster.loop.time() > until_s:
                raise _EndedError
            await self._sleep(POLL_S)

    async def _sleep(self, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        if self._has_ended:
            raise _EndedError

    def _state(self, topic: str, index: int) -> dict[str, Any]:
        state = self._cluster.state(topic, index)
        if state is None or state["leader"] < 0:
            raise _EndedError
        return state

    def _copy(self, number: int, topic: str, index: int) -> Any:
        node = self._cluster.brokers[number].node
        return None if node is None else node.partitions.get(topic, index)

    def _is_in_sync(self, broker: Broker, topic: str, index: int) -> bool:
        state = self._cluster.state(topic, index)
        return state is not None and broker.number in state["isr"]

    def _may_fail(self, number: int) -> Broker:
        """A broker that runs, and without which each partition has a replica in sync."""
        broker = self._cluster.brokers[number]
        if not broker.is_up or broker.is_paused or broker.is_leaving:
            raise _EndedError
        if not self._cluster.others_in_sync(number):
            raise _EndedError
        return broker

    async def _delete_records(
        self, partition_key: tuple[str, int], random: Random, *, is_to_end: bool = False
    ) -> None:
        """Up to the high watermark, or to some offset before."""
        leader = self._copy(self._state(*partition_key)["leader"], *partition_key)
        if leader is None:
            raise _EndedError
        start, end = leader.log.start_offset, leader.high_watermark
        is_to_end = is_to_end or random.random() < 0.6
        before = end if is_to_end else random.randint(min(start, end), end)
        self._cluster.invariants.deleting_records(*partition_key, before)
        self._writers.deleting_records(partition_key, before)
        await self._cluster.operator.delete_records(*partition_key, before)

    async def _lead(self, broker: Broker, topic: str, index: int) -> None:
        """Let a broker lead a partition that it has."""
        copy = self._copy(broker.number, topic, index)
        if copy is None or copy.state is None:
            raise _EndedError
        replicas = [broker.number, *(each for each in copy.state.replicas if each != broker.number)]
        operator = self._cluster.operator
        await operator.reassign(topic, {index: replicas})
        for _ in range(10):
            await operator.elect({topic: [index]})
            if self._state(topic, index)["leader"] == broker.number:
                return
            await self._sleep(self._cluster.pace.s(0.4))

    async def _outrun(self, random: Random) -> None:
        cluster, partition_key = self._cluster, (WRITTEN, 0)
        state = self._state(*partition_key)
        followers = [each for each in state["isr"] if each != state["leader"]]
        if not followers:
            return
        broker = self._may_fail(random.choice(followers))
        cluster.note(f"{broker.name} is to be outrun by the start of {WRITTEN}-0")
        # Then nobody but this one's transaction is open, and nothing of it comes later.
        self._writers.pause(is_paused=random.random() < 0.8)
        try:
            producer, process = self._writers.write_once(partition_key)
            await self._until(lambda: self._is_open(*partition_key))
            process.is_paused = True
            try:
                if random.random() < 0.7:
                    await broker.stop()
                else:
                    broker.kill()
            finally:
                process.is_paused = False
            end = cluster.invariants.end_of(broker.number, *partition_key)
            try:
                await self._until(
                    lambda: producer.has_stopped and self._committed(*partition_key) > end
                )
                await self._delete_records(partition_key, random, is_to_end=True)
                await self._sleep(random.random() * 0.1)
            finally:
                broker.start()
            await self._until(lambda: self._is_in_sync(broker, *partition_key))
            await self._sleep(random.random() * 0.1)
            if random.random() < 0.7:
                broker.kill()
                await self._sleep(0.02)
                broker.start()
                await self._sleep(0.1)
                await self._until(lambda: self._is_in_sync(broker, *partition_key))
            await self._lead(broker, *partition_key)
            await self._sleep(random.random() * 0.3)
        finally:
            self._writers.pause(is_paused=False)

    def _is_open(self, topic: str, index: int) -> bool:
        """A transaction is open, and its first records are committed."""
        state = self._cluster.state(topic, index)
        leader = None if state is None else self._copy(max(state["leader"], 1), topic, index)
        return (
            leader is not None
            and leader.log.last_stable_offset(leader.high_watermark) < leader.high_watermark
        )

    def _committed(self, topic: str, index: int) -> int:
        state = self._cluster.state(topic, index)
        leader = None if state is None else self._copy(max(state["leader"], 1), topic, index)
        return 0 if leader is None else int(leader.high_watermark)

    async def _cut_and_stop(self, random: Random) -> None:
        cluster, partition_key = self._cluster, (WRITTEN, 0)
        broker = self._may_fail(self._state(*partition_key)["leader"])
        await self._until(lambda: self._is_open(*partition_key))
        cluster.note(f"{broker.name} is to cut its end off {WRITTEN}-0 and to stop")
        self._fetches_until_s = cluster.loop.time() + cluster.pace.s(LAGS_S)
        try:
            while not self._has_own_tail(broker, *partition_key):
                # The first one answers fetches that wait. Writers could not ask their coordinator.
                cluster.spawn(self._write_plainly(*partition_key))
                await self._sleep(4 * POLL_S)
                if cluster.loop.time() > self._fetches_until_s:
                    raise _EndedError
        finally:
            self._fetches_until_s = 0.0
        broker.kill()
        is_idle = random.random() < 0.8
        self._writers.pause(is_paused=is_idle)
        try:
            await self._until(lambda: self._state(*partition_key)["leader"] != broker.number)
        finally:
            broker.start()
        try:
            await self._until(lambda: self._has_cut(broker, *partition_key))
            await self._sleep(random.random() * 0.02)
            await broker.stop()
            broker.start()
            await self._until(lambda: self._is_in_sync(broker, *partition_key))
            await self._lead(broker, *partition_key)
            await self._sleep(0.2)
        finally:
            self._writers.pause(is_paused=False)

    async def _write_plainly(self, topic: str, index: int) -> None:
        """A record without a transaction, which readers leave out."""
        now_ms = FIRST_WALL_MS + self._cluster.loop.now_ms
        batch = build_batch([Record(0, now_ms, None, b"plain")])
        await produce(self._connections, topic, index, batch)

    def _has_own_tail(self, broker: Broker, topic: str, index: int) -> bool:
        copies = {
            number: copy
            for number in self._cluster.brokers
            if (copy := self._copy(number, topic, index)) is not None
        }
        own = copies.pop(broker.number, None)
        return own is not None and all(
            own.log.end_offset > each.log.end_offset for each in copies.values()
        )

    def _has_cut(self, broker: Broker, topic: str, index: int) -> bool:
        copy = self._copy(broker.number, topic, index)
        return copy is not None and copy.log.cuts > 0

    async def _move(self, topic: str, random: Random) -> None:
        cluster = self._cluster
        is_idle = random.random() < 0.7
        self._keyed_pause(is_paused=is_idle)
        small = cluster.settings_of_topic(is_compacted=True)
        try:
            if is_idle:
                # Until what is there is compacted.
                await self._sleep(cluster.pace.s(1.6))
            if random.random() < 0.7:
                # A copy has one segment then, with all gaps.
                await cluster.operator.set_config(
                    topic, internal_segment_bytes=str(1 << 20), segment_ms=str(3_600_000)
                )
                await self._sleep(0.05)
            for _ in range(2):
                leader = self._state(topic, 0)["leader"]
                others = [
                    each
                    for each in sorted(cluster.brokers)
                    if each != leader and self._copy(each, topic, 0) is None
                ]
                if not others:
                    return
                new = random.choice(others)
                await cluster.operator.reassign(topic, {0: [new, leader]})
                await self._until(partial(self._is_in_sync, cluster.brokers[new], topic, 0))
                await self._lead(cluster.brokers[new], topic, 0)
                await self._sleep(cluster.pace.s(1.0) * random.random())
        finally:
            self._keyed_pause(is_paused=False)
            await cluster.operator.set_config(topic, **small)

    async def _recreate(self, random: Random) -> None:
        cluster, operator = self._cluster, self._cluster.operator
        self._topics += 1
        topic = f"again-{self._topics}"
        factor = random.choice((1, 1, cluster.factor))
        replicas = random.sample(sorted(cluster.brokers), factor)
        for turn in range(2 + (random.random() < 0.3)):
            await operator.create_on(replicas, topic, **cluster.settings_of_topic())
            await self._until(lambda: self._has_leader(topic))
            cluster.beside[topic] = factor
            topic_id = cluster.invariants.topic_id(topic)
            assert topic_id is not None
            producer, stop = self._workload.write_alone(topic, topic_id)
            self.incarnations[topic] = topic_id, producer.number
            try:
                wanted = random.randrange(1, 3 if turn else 3 * MIN_RECORDS)
                await self._until(partial(_has, producer, wanted))
                if turn:
                    self._kill_all(replicas, random)
                    await self._sleep(0.02)
                    for each in replicas:
                        cluster.brokers[each].start()
                    await self._until(lambda: self._has_leader(topic))
                    await self._sleep(random.random() * 0.3)
                if random.random() < 0.8:
                    await self._delete_records((topic, 0), random)
                    await self._sleep(random.random() * cluster.pace.s(2.5))
                if turn and random.random() < 0.5:
                    return
            finally:
                for each in replicas:
                    cluster.brokers[each].start()
                stop()
            del cluster.beside[topic], self.incarnations[topic]
            cluster.invariants.deleting(topic)
            await operator.delete(topic)
            await self._until(lambda: cluster.invariants.topic_id(topic) is None)
            await self._until(lambda: f"/brokers/topics/{topic}" not in cluster.tree.nodes)
            await self._sleep(random.random() * 0.02)

    def _has_leader(self, topic: str) -> bool:
        state = self._cluster.state(topic, 0)
        return state is not None and state["leader"] >= 0

    def _kill_all(self, replicas: list[int], random: Random) -> None:
        """Kill some brokers; their files stay."""
        for each in replicas:
            if random.random() < 0.9:
                self._cluster.brokers[each].kill()

    def check_incarnations(self) -> None:
        """A topic has the records that were written to it, not to those of the same name that were
        before it. Raises Violation."""
        cluster = self._cluster
        for topic, (topic_id, number) in self.incarnations.items():
            state = cluster.state(topic, 0)
            if state is None or cluster.invariants.topic_id(topic) != topic_id:
                continue
            copy = self._copy(state["leader"], topic, 0)
            for value in values_of(copy.log):
                if not value.startswith(f"{number}-"):
                    raise Violation(f"{topic} has {value} of a topic that was deleted")

    def _fail_sync(self, fault: Fault, random: Random) -> None:
        if self._cluster.others_in_sync(fault.one):
            broker = self._cluster.brokers[fault.one]
            self._cluster.note(f"a sync of {fault.one} is to fail")
            self._cluster.synced.fail_next(broker.host, only_logs=random.random() < 0.7)

    async def _delete_cut(self, random: Random) -> None:
        cluster = self._cluster
        self._topics += 1
        topic = f"wide-{self._topics}"
        await cluster.operator.create(topic, 6, cluster.factor)
        await self._until(lambda: self._has_leader(topic))
        stop = self._workload.write_to(topic)
        try:
            await self._sleep(random.random() * 0.2)
            self._to_cut = random
            cluster.invariants.deleting(topic)
            code = await cluster.operator.delete(topic)
            # After these the topic may be deleted later, also by a request that got no answer.
            may_be_later = topic in cluster.operator.unanswered
            if not may_be_later and code not in (
                None,
                ErrorCode.none,
                ErrorCode.request_timed_out,
            ):
                assert code is not None
                cluster.invariants.deletion_refused(topic, code.name)
                if layout.deleted_topic_path(topic) in cluster.tree.nodes:
                    raise Violation(f"{topic} is half deleted after the answer {code.name}")
            await self._sleep(cluster.pace.s(4.0))
        finally:
            stop()

    def _message_s(self, sender: Process, data: bytes) -> float:
        left_s = self._fetches_until_s - self._cluster.loop.time()
        if left_s > 0 and data[4:6] == _FETCH and sender.host in self._hosts:
            return left_s
        return self._stall_messages_s(sender, data)

    def _write_s(self, process: Process, writes: Sequence[Operation]) -> float:
        """The controller deletes a topic: hold one of its writes up."""
        random = self._to_cut
        if random is not None and any("/wide-" in each.path for each in writes):
            cluster = self._cluster
            if random.random() < 0.5:
                return 0.0
            self._to_cut = None
            cluster.note(f"a deletion by {process.host} meets a fault")
            end_s = cluster.pace.s(4.0) if random.random() < 0.5 else 0.2
            cluster.loop.network.cut(process.host, TREE)
            cluster.loop.driver.context.run(
                cluster.loop.call_later, end_s, cluster.loop.network.join, process.host, TREE
            )
        return self._stall_writes_s(process, writes)


def _has(producer: Producer, count: int) -> bool:
    return producer.acknowledged >= count
