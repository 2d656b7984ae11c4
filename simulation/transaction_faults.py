"""Faults that only runs with transactions have.

- A coordinator dies when it sends markers: before they arrive, or between them.
- Markers are delayed until their transaction's coordinator, or the next one, has sent them again.
- All markers are slow for a while: the next transaction's first batches find the last one open.
- Records are delayed until their transaction has ended.
- The written topic, and that of the transactions' coordinators, move to other brokers.
- The wall clock of a broker jumps, which decides when transactions time out.
- The disk of a broker is full for a while, also just when markers are sent.
"""

from __future__ import annotations

from random import Random
from typing import Final

from ottla.protocol.versions import PRODUCE, WRITE_TXN_MARKERS
from simulation.cluster import TRANSACTIONS, WRITTEN, Cluster
from simulation.faults import FIRST_MS, LAST_MS, Fault
from simulation.process import Process
from simulation.writers import HOSTS, Writers

KINDS: Final = (
    "crash at markers",
    "crash at markers",
    "stall markers",
    "stall markers",
    "slow markers",
    "stall records",
    "stall records",
    "move written",
    "grow written",
    "jump clock",
    "jump clock",
    "full disk",
    "full disk at markers",
)
MAX_COUNT: Final = 6
SLOW_MARKERS_S: Final = 0.25
"""At most; brokers ask for 0.1 s whether the last transaction is complete."""
MAX_PARTITIONS: Final = 3
_MARKERS: Final = WRITE_TXN_MARKERS.to_bytes(2, "big")
_RECORDS: Final = PRODUCE.to_bytes(2, "big")


def draw_transaction_faults(random: Random, brokers: int) -> tuple[Fault, ...]:
    """In order of time; see `simulation.faults`."""
    faults = []
    for _ in range(random.randrange(MAX_COUNT + 1)):
        one, other = random.sample(range(1, brokers + 1), 2)
        at_ms, ms = random.randrange(FIRST_MS, LAST_MS), random.randrange(20, 4_000)
        faults.append(Fault(at_ms, random.choice(KINDS), one, other, ms, random.randrange(1 << 30)))
    return tuple(sorted(faults))


class TransactionFaults:
    """Begins these faults. At most one of each kind waits for its message."""

    def __init__(self, cluster: Cluster, writers: Writers) -> None:
        self._cluster = cluster
        self._writers = writers
        self._waiting: dict[str, Fault] = {}
        self._slow_until_ms = 0
        self._slow = Random(0)
        self._stall_others_s = cluster.loop.network.stall_s
        cluster.loop.network.stall_s = self._stall_s

    def begin(self, fault: Fault) -> bool:
        """Start a fault now; False if it is of another kind."""
        match fault.kind:
            case "crash at markers" | "stall markers" | "stall records" | "full disk at markers":
                self._waiting[fault.kind] = fault
            case "slow markers":
                self._slow_until_ms = self._cluster.loop.now_ms + fault.ms
                self._slow = Random(fault.seed)
            case "move written":
                self._cluster.spawn(self._move(Random(fault.seed)))
            case "grow written":
                self._cluster.spawn(self._grow())
            case "full disk":
                self._fill(fault)
            case _:
                return False
        return True

    def end(self) -> None:
        """What waits for a message begins no more, and all disks have space."""
        self._waiting.clear()
        self._slow_until_ms = 0
        for broker in self._cluster.brokers.values():
            self._cluster.full_disks.empty(broker.host)

    def _fill(self, fault: Fault) -> None:
        broker, loop = self._cluster.brokers[fault.one], self._cluster.loop
        self._cluster.note(f"the disk of {fault.one} is full")
        self._cluster.full_disks.fill(broker.host)
        loop.driver.context.run(loop.call_later, fault.ms / 1000, self._empty, fault)

    def _empty(self, fault: Fault) -> None:
        broker = self._cluster.brokers[fault.one]
        self._cluster.note(f"the disk of {fault.one} has space")
        self._cluster.full_disks.empty(broker.host)
        # One that ended itself is started again, as by an operator.
        broker.start()

    async def _move(self, random: Random) -> None:
        cluster = self._cluster
        topic = random.choice((WRITTEN, TRANSACTIONS))
        indexes = [
            int(name.rpartition("-")[2])
            for name in cluster.states()
            if name.rpartition("-")[0] == topic
        ]
        if indexes:
            replicas = random.sample(sorted(cluster.brokers), cluster.factor)
            await cluster.operator.reassign(topic, {random.choice(indexes): tuple(replicas)})

    async def _grow(self) -> None:
        count = self._cluster.written_partitions + 1
        if count <= MAX_PARTITIONS and await self._cluster.operator.add_partitions(WRITTEN, count):
            # Two requests at the same time may both ask for the same count.
            while self._cluster.written_partitions < count:
                self._writers.add_partition()

    def _stall_s(self, sender: Process, data: bytes) -> float:
        key = data[4:6]
        if key == _MARKERS:
            return self._markers_s(sender)
        if key == _RECORDS and sender.host.startswith(HOSTS):
            fault = self._waiting.pop("stall records", None)
            if fault is not None:
                self._cluster.note(f"records of {sender.host} are stalled")
                return self._stalled_s(1 + fault.ms / 1000)
        return self._stall_others_s(sender, data)

    def _markers_s(self, sender: Process) -> float:
        fault = self._waiting.pop("crash at markers", None)
        if fault is not None:
            self._cluster.note(f"{sender.host} sends markers and crashes")
            self._crash_soon(sender, fault)
        fault = self._waiting.pop("full disk at markers", None)
        if fault is not None:
            self._fill(fault)
        fault = self._waiting.pop("stall markers", None)
        if fault is None:
            is_slow = self._cluster.loop.now_ms < self._slow_until_ms
            return self._slow.random() * SLOW_MARKERS_S if is_slow else 0.0
        self._cluster.note(f"markers of {sender.host} are stalled")
        return self._stalled_s(fault.ms / 1000)

    def _stalled_s(self, delay_s: float) -> float:
        cluster = self._cluster
        until_ms = cluster.loop.now_ms + int(delay_s * 1000)
        cluster.stalled_until_ms = max(cluster.stalled_until_ms, until_ms)
        return delay_s

    def _crash_soon(self, sender: Process, fault: Fault) -> None:
        loop = self._cluster.loop
        for broker in self._cluster.brokers.values():
            if broker.process is sender:
                delay_s = fault.seed % 8 / 1000
                loop.driver.context.run(loop.call_later, delay_s, broker.kill)
                loop.driver.context.run(loop.call_later, fault.ms / 1000, broker.start)
