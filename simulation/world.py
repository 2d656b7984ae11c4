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
from ottla.controller.elections import ElectionType, elect_leaders
from ottla.controller.image import NO_LEADER
from ottla.controller.loading import first_writes
from ottla.controller.topics import NewTopic, create_topics
from simulation.broker import Broker
from simulation.clients import Consumer, Producer
from simulation.deciders import Deciders
from simulation.faults import LAST_MS, Fault, draw_faults
from simulation.ledger import Ledger, Violation, check_at_end
from simulation.memory_log import MemoryLog
from simulation.messages import Decide
from simulation.mischief import begin_fault
from simulation.network import Network
from simulation.schedule import Schedule
from simulation.tree import Tree

HEAL_MS = LAST_MS + 1000
STOP_CLIENTS_MS = HEAL_MS + 4000
END_MS = HEAL_MS + 45_000
_STEPS_MOST = 400_000
_TOLD_MOST = 2000
TOPIC = "t"


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
        self.faults = draw_faults(plan, count) if faults is None else faults
        self.deciders = deciders or Deciders()
        self.schedule = Schedule(Random(f"{seed} world"))
        self.transcript: deque[str] = deque(maxlen=_TOLD_MOST)
        self.network = Network(self.schedule)
        self.ledger = Ledger(self, self._is_unclean_allowed)
        self.tree = Tree(self._written)
        self.config = BrokerConfig({"unclean.leader.election.enable": str(self.unclean).lower()})
        self.clients_stopped = False
        self._ids = 0
        self._operator_gave_up: set[str] = set()
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
        return self.unclean or partition in self._operator_gave_up

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
        accounts = self.ledger.accounts.values()
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
        self.schedule.after(300, self._create_topic)
        for fault in self.faults:
            self.schedule.after(fault.at_ms, partial(begin_fault, self, fault))
        self.schedule.after(HEAL_MS, self._heal)
        self.schedule.after(STOP_CLIENTS_MS, self._stop_clients)
        self._make_clients()
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

    def _create_topic(self) -> None:
        def answered(reply: object) -> None:
            if reply is None:
                self.schedule.after(150, self._create_topic)

        topic = NewTopic(TOPIC, self.partitions, self.factor)
        self.ask_controller(
            Decide(
                lambda image: create_topics(
                    [topic], image, self.config, new_id=self.new_id, start=self.seed
                ),
                "create topic",
            ),
            answered,
        )

    def ask_controller(self, request: Decide, answered: object) -> None:
        """An operator's request, at whoever is the controller; None where nobody is."""
        assert callable(answered)
        drivers = [each.driver for each in self.brokers.values() if each.driver is not None]
        ready = [each for each in drivers if each.is_ready and not each.broker.is_paused]
        if ready:
            ready[0].broker.handle(request, answered)
        else:
            answered(None)

    def _make_clients(self) -> None:
        number = -1
        for index in range(self.partitions):
            name = f"{TOPIC}-{index}"
            for acks, idempotent in ((-1, True), (-1, False), (1, True)):
                self.producers.append(Producer(number, self, name, acks, idempotent))
                number -= 1
            consumer = Consumer(number, self, name)
            number -= 1
            consumer.later(1000, consumer.begin)
        for producer in self.producers:
            producer.later(1000, producer.begin)

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
        self.schedule.after(2000, self._give_up_what_is_lost)

    def _give_up_what_is_lost(self) -> None:
        """An operator has partitions led whose in-sync replicas all lost their disks."""
        lost: list[int] = []
        for name, account in self.ledger.accounts.items():
            state = account.state
            if state is not None and state.leader == NO_LEADER and account.forgiven:
                self._operator_gave_up.add(name)
                lost.append(int(name.rpartition("-")[2]))
        if lost:
            wanted = {TOPIC: lost}
            request = Decide(
                lambda image: elect_leaders(ElectionType.UNCLEAN, wanted, image), "elect unclean"
            )
            self.ask_controller(request, lambda reply: None)
            self.schedule.after(1000, self._give_up_what_is_lost)

    def _stop_clients(self) -> None:
        self.clients_stopped = True

    def _unhealed(self) -> str | None:
        """What is still amiss; None when all is well."""
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
