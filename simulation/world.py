"""A whole simulated cluster: made from a seed and a list of faults, run to its end, and judged."""

from __future__ import annotations

import json
import traceback
from collections import deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from uuid import UUID

from ottla.config.broker import BrokerConfig
from ottla.controller import layout
from ottla.controller.image import NO_LEADER
from ottla.controller.loading import first_writes
from ottla.replication.leader import InSyncChange
from simulation.broker import Broker
from simulation.clients import Consumer, Producer
from simulation.deciders import Deciders
from simulation.faults import LAST_MS, Fault, draw_faults
from simulation.hold_up import HoldUp
from simulation.ledger import Ledger, Violation, check_at_end
from simulation.memory_log import MemoryLog
from simulation.mischief import begin_fault
from simulation.network import Network
from simulation.operator import TOPIC, Operator
from simulation.schedule import Schedule
from simulation.tree import Tree

HEAL_MS = LAST_MS + 1000
STOP_CLIENTS_MS = HEAL_MS + 4050
END_MS = HEAL_MS + 45_000
_STEPS_MOST = 400_000
_TOLD_MOST = 2000


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    seed: int
    violation: str | None
    transcript: tuple[str, ...]
    faults: tuple[Fault, ...]
    steps: int
    acknowledged: int
    lost: int
    """Committed records that an unclean election or lost disks took, as they may."""
    elections: int


class World:
    """See the module's text."""

    def __init__(
        self, seed: int, faults: tuple[Fault, ...] | None = None, deciders: Deciders | None = None
    ) -> None:
        self.seed = seed
        plan = Random(f"{seed} plan")
        count = plan.choice((3, 3, 4, 5))
        self.unclean = plan.random() < 0.25
        self.min_isr = plan.choice((1, 1, 2))
        self.factor = plan.choice((2, 3, 3))
        self.partitions = plan.choice((1, 2))
        self.probes = plan.random() < 0.6
        """A process that is gone is found out by its closed port, not by its session only."""
        self.rebalances = plan.random() < 0.4
        """auto.leader.rebalance.enable"""
        self.faults = draw_faults(plan, count) if faults is None else faults
        self.hold_up: HoldUp | None = None
        self.deciders = deciders or Deciders()
        self.schedule = Schedule(Random(f"{seed} world"))
        self.transcript: deque[str] = deque(maxlen=_TOLD_MOST)
        self.network = Network(self.schedule)
        self.ledger = Ledger(self, self._is_unclean_allowed)
        self.tree = Tree(self._written)
        self.config = BrokerConfig({"unclean.leader.election.enable": str(self.unclean).lower()})
        self.clients_stopped = False
        self.operator = Operator(self)
        self._ids = 0
        self._clients = 0
        self._make_tree()
        self.brokers = {number: Broker(number, self) for number in range(1, count + 1)}
        self.network.hosts.update(self.brokers)
        self.producers: list[Producer] = []

    def _make_tree(self) -> None:
        session = self.tree.connect()
        self.tree.multi(session, first_writes({}, "simulation"))

    def new_id(self) -> UUID:
        """Ids in a row."""
        self._ids += 1
        return UUID(int=self._ids)

    def note(self, text: str) -> None:
        """A line of the transcript."""
        self.transcript.append(f"{self.schedule.now_ms:6} ms  {text}")

    # What the ledger asks.

    def log(self, broker: int, partition: str) -> MemoryLog | None:
        """A replica's log, its process dead or alive."""
        return self.brokers[broker].disk.logs.get(partition)

    def is_known(self, broker: int) -> bool:
        """False from a disk's loss until the controller has put the new one down."""
        node = self.tree.nodes.get(layout.directory_path(broker))
        if node is None:
            return True
        known: str = json.loads(node.data)["directory_id"]
        return known == str(self.brokers[broker].disk.directory_id)

    def _is_unclean_allowed(self, partition: str) -> bool:
        return self.unclean or partition in self.operator.gave_up

    def _written(self, path: str, before: object, after: object) -> None:
        node = self.tree.nodes.get(path)
        if path.endswith("/state") and node is not None:
            self.note(f"tree: {path.split('/')[3]}-{path.split('/')[5]} {node.data.decode()}")
        elif before is None or after is None:
            self.note(f"tree: {path} {'made' if after is not None else 'deleted'}")
        self.ledger.written(path, node)

    # The run.

    def run(self) -> Outcome:
        """From the first start to the last check."""
        violation = None
        try:
            self._run()
        except Violation as error:
            violation = str(error)
            self.note(f"VIOLATION {error}")
        except AssertionError as error:
            # A decider's own assertion, or one of the simulation: a finding as good as any.
            where = traceback.extract_tb(error.__traceback__)[-1]
            violation = f"assertion {Path(where.filename).name}:{where.lineno}: {where.line}"
            self.note(f"VIOLATION {violation}")
        accounts = [*self.ledger.accounts.values(), *self.ledger.deleted]
        return Outcome(
            seed=self.seed,
            violation=violation,
            transcript=tuple(self.transcript),
            faults=self.faults,
            steps=self.schedule.steps,
            acknowledged=sum(len(each.acknowledged) for each in accounts),
            lost=sum(len(each.losses) for each in accounts),
            elections=sum(len(each.leaders) for each in accounts),
        )

    def _run(self) -> None:
        random = self.schedule.random
        for broker in self.brokers.values():
            self.schedule.after(random.randrange(100), broker.start)
        self.schedule.after(300, self.operator.create)
        for fault in self.faults:
            self.schedule.after(fault.at_ms, partial(self.begin, fault))
        self.schedule.after(HEAL_MS, self._heal)
        self.schedule.after(STOP_CLIENTS_MS, self._stop_clients)
        for index in range(self.partitions):
            self.make_clients(index)
        checked_ms = STOP_CLIENTS_MS
        while self.schedule.now_ms < END_MS:
            if not self.schedule.step():
                break
            if self.schedule.steps > _STEPS_MOST:
                raise Violation(f"no end after {_STEPS_MOST} steps")
            if self.schedule.now_ms > checked_ms + 300:
                checked_ms = self.schedule.now_ms
                if self._unhealed() is None:
                    break
        why = self._unhealed()
        if why is not None:
            raise Violation(
                f"not healed {(END_MS - HEAL_MS) // 1000} s after the last fault: {why}"
            )
        check_at_end(self.ledger, self._final_logs())
        for broker in self.brokers.values():
            strays = broker.disk.logs.keys() - broker.replicas.by_name.keys()
            if strays:
                raise Violation(
                    f"{broker.number} keeps {sorted(strays)}, which have no place there"
                )

    def begin(self, fault: Fault) -> None:
        """A fault begins now, unless all is healed."""
        if self.schedule.now_ms < HEAL_MS:
            begin_fault(self, fault)

    def held_up_ms(self, leader: int, change: InSyncChange) -> int:
        """How much longer than others this proposal is on its way."""
        return 0 if self.hold_up is None else self.hold_up.delay_ms(leader, change)

    def hung_up(self, number: int) -> None:
        """A process is gone: who is connected with it, and not cut off, notices."""
        for broker in self.brokers.values():
            driver = broker.driver
            if driver is not None and frozenset((number, broker.number)) not in self.network.cuts:
                broker.after(self.schedule.random.randrange(1, 20), partial(driver.hung_up, number))

    def make_clients(self, index: int) -> None:
        """Producers and a consumer of one partition."""
        name = f"{TOPIC}-{index}"
        for acks, idempotent in ((-1, True), (-1, False), (1, True)):
            producer = Producer(self._client_number(), self, name, acks, idempotent)
            self.producers.append(producer)
            producer.later(1000, producer.begin)
        consumer = Consumer(self._client_number(), self, name)
        consumer.later(1000, consumer.begin)

    def _client_number(self) -> int:
        self._clients += 1
        return -self._clients

    # The end.

    def _heal(self) -> None:
        self.note("all is healed")
        self.network.cuts.clear()
        self.network.loss = 0.0
        for broker in self.brokers.values():
            if broker.is_up and broker.wants_to_leave:
                broker.leave()
            if not broker.is_up:
                broker.start()
            elif broker.is_paused:
                broker.resume()
            broker.reached_again()
        for producer in self.producers:
            producer.done_before = producer.done
        self.hold_up = None
        # Whatever became of a deletion on its way, there is a topic in the end.
        self.schedule.after(2000, self.operator.create)
        self.schedule.after(2000, self.operator.give_up_what_is_lost)

    def _stop_clients(self) -> None:
        if self.operator.is_giving_up:
            # So much later can they get something through.
            self.schedule.after(1000, self._stop_clients)
        else:
            self.clients_stopped = True

    def _unhealed(self) -> str | None:
        """What is still amiss; None when all is well."""
        if not self.clients_stopped:
            return "partitions have been lost again and again"
        image = next(
            (
                each.driver.image
                for each in self.brokers.values()
                if each.driver is not None and each.driver.is_ready
            ),
            None,
        )
        if image is None:
            return "no controller"
        topic = image.topic(TOPIC)
        if topic is None:
            return "no topic"
        for index, state in enumerate(topic.partitions):
            name = f"{TOPIC}-{index}"
            if state.leader == NO_LEADER:
                return f"{name} has no leader: {state}"
            if state.is_reassigning or set(state.isr) != set(state.replicas):
                return f"{name} is not whole: {state}"
            if self.rebalances and state.leader != state.replicas[0]:
                return f"{name} is not led by its preferred leader: {state}"
            ends = set()
            for number in state.replicas:
                replica = self.brokers[number].replicas.by_name.get(name)
                if replica is None or replica.epoch != state.leader_epoch:
                    return f"{name}: {number} has not heard of epoch {state.leader_epoch}"
                ends |= {replica.log.end_offset, replica.high_watermark}
            if len(ends) > 1:
                return f"{name}: log ends and high watermarks {sorted(ends)}"
        if any(producer.done == producer.done_before for producer in self.producers):
            return "a producer has got nothing through since the healing"
        return None

    def _final_logs(self) -> dict[str, list[MemoryLog]]:
        logs: dict[str, list[MemoryLog]] = {}
        for broker in self.brokers.values():
            for name, replica in broker.replicas.by_name.items():
                logs.setdefault(name, []).append(replica.log)
        return logs


def run(
    seed: int, faults: tuple[Fault, ...] | None = None, deciders: Deciders | None = None
) -> Outcome:
    """One seed."""
    return World(seed, faults, deciders).run()
