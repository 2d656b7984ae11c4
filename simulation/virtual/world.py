"""A whole cluster of shipped brokers, made from a seed and a list of faults, run and judged."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import tempfile
import traceback
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final
from zlib import crc32

from faults.anomaly import Policy
from faults.checker import check
from faults.history import Elected, Epochs, Event, FinalRead

from ottla.controller import layout
from ottla.coordination.tree import Delete
from ottla.coordination.tree import Node as TreeNode
from simulation.faults import LAST_MS, Fault, draw_faults
from simulation.tree import Tree
from simulation.virtual.broker import PORT, Broker
from simulation.virtual.clients import Producer, Reader
from simulation.virtual.disk import SyncedSizes
from simulation.virtual.loop import VirtualLoop
from simulation.virtual.operator import Operator
from simulation.virtual.process import Process
from simulation.virtual.replicas import check_replicas
from simulation.virtual.tree_session import TREE, TreeHost
from simulation.virtual.violation import Violation

TOPIC: Final = "t"
HEAL_MS: Final = LAST_MS + 1_000
RECOVERS_WITHIN_MS: Final = 60_000
MAX_LINES: Final = 4_000
SESSION_TIMEOUT_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `digest` is the same whenever the seed is run."""

    seed: int
    violation: str | None
    faults: tuple[Fault, ...]
    transcript: tuple[str, ...]
    digest: int
    callbacks: int
    acknowledged: int
    elections: int
    virtual_ms: int


class World:
    """See the module's text."""

    def __init__(self, seed: int, faults: Sequence[Fault] | None = None) -> None:
        plan = Random(f"{seed} plan")
        self.seed = seed
        self.count = plan.choice((3, 3, 4))
        self.partitions = plan.choice((1, 2))
        self.factor = min(self.count, plan.choice((2, 3, 3)))
        self.min_isr = plan.choice((1, 2))
        self.faults = tuple(
            draw_faults(plan, self.count, weights=KINDS) if faults is None else faults
        )
        self.loop = VirtualLoop(Random(f"{seed} world"))
        self.transcript: deque[str] = deque(maxlen=MAX_LINES)
        self.history: list[Event] = []
        self.digest = 0
        self.leaders: dict[tuple[int, int], int] = {}
        self.tree = Tree(self._written)
        self.host = TreeHost(self.loop, self.tree, SESSION_TIMEOUT_S)
        self.folder = Path(tempfile.mkdtemp(prefix="simulation-", dir=memory_folder()))
        settings = {
            "min.insync.replicas": str(self.min_isr),
            "replica.lag.time.max.ms": "2000",
            "replica.fetch.wait.max.ms": "500",
            "log.flush.offset.checkpoint.interval.ms": "2000",
            "zookeeper.session.timeout.ms": str(int(SESSION_TIMEOUT_S * 1000)),
        }
        self.brokers = {
            number: Broker(
                number, self.loop, self.host, self.folder / str(number), settings, self.note, seed
            )
            for number in range(1, self.count + 1)
        }
        self.addresses = {number: (each.host, PORT) for number, each in self.brokers.items()}
        self.producers: list[Producer] = []
        self.readers: list[Reader] = []
        self.bugs: list[str] = []
        self.synced = SyncedSizes()
        self._topics = 0
        self._torn: dict[int, None] = {}
        self._forgiven: dict[int, None] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    def note(self, text: str) -> None:
        """A line of the transcript."""
        line = f"{self.loop.now_ms:6} ms  {text}"
        self.digest = crc32(line.encode(), self.digest)
        self.transcript.append(line)

    def record(self, event: Event) -> None:
        """An event of the clients' history."""
        self.digest = crc32(repr(event).encode(), self.digest)
        self.history.append(event)

    def _written(self, path: str, before: TreeNode | None, after: TreeNode | None) -> None:
        """The tree changed: elections are part of the history."""
        self.digest = crc32(f"{path} {after}".encode(), self.digest)
        parts = path.split("/")
        if path.startswith(f"{layout.BROKER_IDS}/") and after is not None:
            self._torn.pop(int(parts[3]), None)
        if path.endswith("/state") and after is not None and parts[3] == TOPIC:
            state = json.loads(after.data)
            self._forgive(int(parts[5]), state["isr"])
            self.note(f"tree: {TOPIC}-{parts[5]} {after.data.decode()}")
            place = (int(parts[5]), state["leader_epoch"])
            known = self.leaders.setdefault(place, state["leader"])
            if known != state["leader"] and known != -1:
                raise Violation(f"epoch {place} has two leaders: {known} and {state['leader']}")
            self.record(
                Elected(
                    self.loop.now_ms,
                    int(parts[5]),
                    state["leader"],
                    state["leader_epoch"],
                    tuple(state["isr"]),
                )
            )

    # The run.

    def run(self) -> Outcome:
        """From the first start to the last check."""
        violation = None
        handler = _ErrorLog(self.bugs)
        logging.getLogger("ottla").addHandler(handler)
        self.loop.set_exception_handler(self._on_exception)
        try:
            self.loop.driver.context.run(self.host.watch_sessions)
            with self.synced.watching():
                self.loop.run(self._main)
            if self.bugs:
                violation = self.bugs[0]
        except Violation as error:
            violation = str(error)
        except AssertionError as error:
            violation = f"assertion: {error}"
        finally:
            logging.getLogger("ottla").removeHandler(handler)
            for broker in self.brokers.values():
                broker.kill()
            _KEPT.append(self)
            shutil.rmtree(self.folder, ignore_errors=True)
        if violation is not None:
            self.note(f"VIOLATION {violation}")
        return Outcome(
            seed=self.seed,
            violation=violation,
            faults=self.faults,
            transcript=tuple(self.transcript),
            digest=self.digest,
            callbacks=self.loop.callbacks,
            acknowledged=sum(each.acknowledged for each in self.producers),
            elections=len(self.leaders),
            virtual_ms=self.loop.now_ms,
        )

    def _on_exception(self, loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Violation | AssertionError):
            self.bugs.append(str(error) or repr(error))
        else:
            task = context.get("task") or context.get("future")
            self.bugs.append(f"{context.get('message')}: {error!r} {task!r}")

    async def _main(self) -> None:
        for broker in self.brokers.values():
            self.loop.call_later(self.loop.random.random() * 0.1, broker.start)
        self.operator = Operator(self.addresses, Random(f"{self.seed} operator"), self.note)
        await self.operator.create(TOPIC, self.partitions, self.factor)
        for index in range(self.partitions):
            self._start_clients(index)
        faults = asyncio.ensure_future(self._faults())
        await asyncio.sleep(max(0.0, HEAL_MS / 1000 - self.loop.time()))
        await faults
        self._heal()
        await self._recovered()
        for producer in self.producers:
            producer.stopping = True
        await self._check()

    def _start_clients(self, index: int) -> None:
        for _ in range(2):
            number = len(self.producers) + 1
            producer = Producer(
                number,
                (TOPIC, index),
                self.addresses,
                self.record,
                lambda: self.loop.now_ms,
                Random(f"{self.seed} producer {number}"),
            )
            self.producers.append(producer)
            self.loop.start_in(Process(f"10.0.1.{number}"), producer.run)
        reader = self._reader(index)
        self.readers.append(reader)
        self.loop.start_in(Process(f"10.0.4.{reader.number}"), reader.run)

    def _reader(self, index: int) -> Reader:
        number = len(self.readers) + 1
        return Reader(number, (TOPIC, index), self.addresses, self.record, lambda: self.loop.now_ms)

    # Faults.

    async def _faults(self) -> None:
        for fault in self.faults:
            await asyncio.sleep(max(0.0, fault.at_ms / 1000 - self.loop.time()))
            self.note(str(fault))
            self.loop.call_soon(self._begin, fault)

    def _begin(self, fault: Fault) -> None:
        broker = self.brokers[fault.one]
        end_s = fault.ms / 1000
        match fault.kind:
            case "crash":
                broker.kill()
                self.loop.call_later(end_s, broker.start)
            case "pause":
                broker.pause()
                self.loop.call_later(end_s, broker.resume)
            case "cut":
                pair = broker.host, self.brokers[fault.other].host
                self.loop.network.cut(*pair)
                self.loop.call_later(end_s, self.loop.network.join, *pair)
            case "cut tree":
                self.loop.network.cut(broker.host, TREE)
                self.loop.call_later(end_s, self.loop.network.join, broker.host, TREE)
            case "expire":
                for session in list(self.host.sessions.values()):
                    if session.process is broker.process:
                        self.host.expire(session.number)
            case "leave":
                if broker.is_up and not broker.is_paused:
                    leaving = self.loop.create_task(broker.stop())
                    leaving.add_done_callback(lambda _: self.loop.call_later(end_s, broker.start))
            case "lose disk" | "power":
                if self._others_in_sync(fault.one):
                    broker.kill()
                    if fault.kind == "lose disk":
                        broker.lose_disk()
                        self._torn[fault.one] = None
                    else:
                        for line in self.synced.cut_unsynced(broker.folder, Random(fault.seed)):
                            self.note(f"{broker.name} lost {line}")
                            self._torn[fault.one] = None
                    self.loop.call_later(end_s, broker.start)
            case "depose":
                self._depose()
            case "reassign":
                index = fault.seed % self.partitions
                self._spawn(self.operator.reassign(TOPIC, index, self.factor))
            case "preferred":
                self._spawn(self.operator.elect())
            case "delete":
                self._spawn(self._make_and_delete(end_s))
            case _:
                raise AssertionError(fault.kind)

    def _forgive(self, index: int, isr: list[int]) -> None:
        """The in-sync set was written. A broker that lost data and has not registered since may be
        all that is left of it, if the controller noticed the others' absence first: what only they
        have may be lost then, as in Kafka.
        """
        if isr and set(isr) <= self._torn.keys():
            self.note(f"{TOPIC}-{index} may lose what its last in-sync replica lost")
            self._forgiven[index] = None

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    def _others_in_sync(self, number: int) -> bool:
        """True if every partition has another in-sync replica: nothing may be lost then."""
        states = [self._state(index) for index in range(self.partitions)]
        return all(state is not None and set(state["isr"]) - {number} for state in states)

    def _state(self, index: int) -> dict[str, Any] | None:
        node = self.tree.nodes.get(layout.state_path(TOPIC, index))
        return None if node is None else json.loads(node.data)

    def _depose(self) -> None:
        """The controller's node is gone, as after an operator's delete: another is elected."""
        if layout.CONTROLLER in self.tree.nodes:
            session = self.tree.connect()
            self.tree.multi(session, [Delete(layout.CONTROLLER)])
            self.tree.expire(session)

    async def _make_and_delete(self, lasts_s: float) -> None:
        """Another topic comes, is written to, and goes: logs vanish under flushes and fetches."""
        self._topics += 1
        name = f"short-{self._topics}"
        await self.operator.create(name, 2, self.factor)
        process = Process(f"10.0.5.{self._topics}")
        producer = Producer(
            100 + self._topics,
            (name, 0),
            self.addresses,
            lambda _: None,
            lambda: self.loop.now_ms,
            Random(f"{self.seed} {name}"),
        )
        self.loop.start_in(process, producer.run)
        await asyncio.sleep(lasts_s)
        await self.operator.delete(name)
        self.loop.forget(process)
        self.loop.network.died(process)

    def _heal(self) -> None:
        self.note("all is healed")
        self.loop.network.heal()
        for broker in self.brokers.values():
            broker.resume()
            broker.start()

    # The end.

    async def _recovered(self) -> None:
        """Wait until every broker is back and every partition whole, and producers go on."""
        before = [producer.acknowledged for producer in self.producers]
        until_ms = self.loop.now_ms + RECOVERS_WITHIN_MS
        while True:
            await asyncio.sleep(0.3)
            for broker in self.brokers.values():
                broker.start()
            for index in self._forgiven:
                state = self._state(index)
                if state is not None and state["leader"] == -1:
                    # No in-sync replica has its disk any more: the operator gives up what is lost.
                    await self.operator.elect(unclean=True)
            why = self._unhealed()
            if why is None and all(
                producer.acknowledged > count
                for producer, count in zip(self.producers, before, strict=True)
            ):
                return
            if self.loop.now_ms > until_ms:
                raise Violation(
                    f"not recovered {RECOVERS_WITHIN_MS // 1000} s after the last fault: "
                    f"{why or 'a producer gets nothing acknowledged'}"
                )

    def _unhealed(self) -> str | None:
        for index in range(self.partitions):
            state = self._state(index)
            if state is None:
                return f"{TOPIC}-{index} has no state"
            if state["leader"] == -1:
                return f"{TOPIC}-{index} has no leader: {state}"
            if len(state["isr"]) < self.factor:
                return f"{TOPIC}-{index} has replicas out of sync: {state}"
        for broker in self.brokers.values():
            if broker.failure is not None:
                raise Violation(f"{broker.name} ended itself: {broker.failure}")
        return None

    async def _check(self) -> None:
        await asyncio.sleep(8)  # producers end their last batch, replicas copy it
        for index in range(self.partitions):
            state = self._state(index)
            assert state is not None
            partition = check_replicas(self.brokers, TOPIC, index, state["leader"])
            reader = Reader(0, (TOPIC, index), self.addresses, lambda _: None, lambda: 0)
            end = partition.high_watermark
            while reader.offset < end:
                if not await reader.poll():
                    await asyncio.sleep(0.1)
            self.record(FinalRead(self.loop.now_ms, index, 0, end, tuple(reader.records)))
            starts = tuple((each.epoch, each.start_offset) for each in partition.log.epochs.entries)
            self.record(Epochs(self.loop.now_ms, index, starts))
        verdict = check(self.history, Policy.strict)
        forbidden = [each for each in verdict.forbidden if each.partition not in self._forgiven]
        if forbidden:
            first = forbidden[0]
            raise Violation(f"{first.kind.value}: {TOPIC}-{first.partition}: {first.what}")


KINDS: Final = (
    ("crash", 5),
    ("power", 4),
    ("pause", 4),
    ("cut", 5),
    ("cut tree", 4),
    ("expire", 2),
    ("leave", 3),
    ("lose disk", 2),
    ("depose", 3),
    ("reassign", 3),
    ("preferred", 2),
    ("delete", 3),
)
"""What goes wrong or is asked for, with its weight."""


_KEPT: Final[list[World]] = []
"""Every run of this process: freed, coroutines of dead processes would run their `finally`, and
what these do and log would be taken for another seed's. `__main__` ends its workers in time."""


def memory_folder() -> str | None:
    """Where files live in memory; None for the system's own choice."""
    folder = Path("/dev/shm")
    return str(folder) if folder.is_dir() else None


class _ErrorLog(logging.Handler):
    """A broker logs an error only for a bug of ours, or for a disk that fails."""

    def __init__(self, bugs: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._bugs = bugs

    def emit(self, record: logging.LogRecord) -> None:
        cause = ""
        if record.exc_info is not None and record.exc_info[1] is not None:
            error = record.exc_info[1]
            where = traceback.extract_tb(error.__traceback__)[-1]
            cause = f": {error!r} at {Path(where.filename).name}:{where.lineno}"
        self._bugs.append(f"logged: {record.getMessage()}{cause}")


def run(seed: int, faults: Sequence[Fault] | None = None) -> Outcome:
    """One seed."""
    return World(seed, faults).run()
