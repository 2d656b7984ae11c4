"""Producers and consumers: they retry what may be retried, and note what they were told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.controller.image import NO_LEADER
from ottla.protocol.errors import ErrorCode
from simulation.memory_log import NO_ID, Value
from simulation.messages import Latest, Produce, Produced, Read, ReadBack

if TYPE_CHECKING:
    from simulation.world import World

TIMEOUT_MS = 1200
_BACKOFF_MS = 120


class Client:
    """A host that only asks. Never paused, never dead: brokers are what is tried here."""

    incarnation = 0
    is_up = True

    def __init__(self, number: int, world: World, partition: str) -> None:
        self.number = number
        self.world = world
        self.partition = partition
        self.leader = NO_LEADER
        self.topic_id = NO_ID

    def enter(self, action: Any) -> None:
        """Clients are always awake."""
        action()

    def handle(self, request: Any, reply: Any) -> None:
        """Nobody asks a client."""
        raise AssertionError(request)

    def find_leader(self) -> int:
        """Metadata from any broker that is up, old as it may be."""
        random = self.world.schedule.random
        up = [each for each in self.world.brokers.values() if each.is_up and not each.is_paused]
        if up:
            broker = random.choice(up)
            topic, _, index = self.partition.rpartition("-")
            state = broker.image.partition(topic, int(index))
            self.leader = NO_LEADER if state is None else state.leader
            if state is not None and broker.image.topics[topic].topic_id != self.topic_id:
                self.topic_id = broker.image.topics[topic].topic_id
                self.begin_anew()
        return self.leader

    def begin_anew(self) -> None:
        """There is another topic of that name."""
        raise NotImplementedError

    def later(self, delay_ms: int, action: Any) -> None:
        """A timer."""
        self.world.schedule.after(delay_ms, action)


class Producer(Client):
    """One value after another; the next when the one before is acknowledged.

    Idempotent: a value sent again is written once. Else it may be there twice.
    """

    def __init__(
        self, number: int, world: World, partition: str, acks: int, idempotent: bool
    ) -> None:
        super().__init__(number, world, partition)
        self.acks = acks
        self.idempotent = idempotent
        self.producer_id = -number * 1000
        self.sequence = 0
        self.done = 0
        """Values acknowledged."""
        self.done_before = 0
        """How many those were when all was healed."""

    def begin(self) -> None:
        """Start sending."""
        self.later(self.world.schedule.random.randrange(300), self._send)

    def begin_anew(self) -> None:
        self.producer_id += 1
        self.sequence = 0

    def _send(self) -> None:
        world = self.world
        if world.clients_stopped:
            return
        if self.leader == NO_LEADER and self.find_leader() == NO_LEADER:
            self.later(_BACKOFF_MS, self._send)
            return
        value = Value(self.producer_id, self.sequence, self.idempotent)
        request = Produce(self.partition, self.topic_id, value, self.acks)
        world.network.ask(
            self, self.leader, request, TIMEOUT_MS, lambda answer: self._sent(value, answer)
        )

    def _sent(self, value: Value, answer: Produced | None) -> None:
        random = self.world.schedule.random
        if answer is not None and answer.code is ErrorCode.none:
            self.world.ledger.acknowledged(self.partition, value, answer, self.acks)
            self.sequence += 1
            self.done += 1
            self.later(random.randrange(40, 320), self._send)
            return
        if answer is not None and answer.code is ErrorCode.out_of_order_sequence_number:
            # The broker lost what came before; a new producer id begins anew (KIP-360).
            self.producer_id += 1
            self.sequence = 0
        self.leader = NO_LEADER
        self.later(random.randrange(20, _BACKOFF_MS), self._send)


class Consumer(Client):
    """Reads on from where it was; sometimes asks for the latest offset."""

    def __init__(self, number: int, world: World, partition: str) -> None:
        super().__init__(number, world, partition)
        self.position = 0

    def begin_anew(self) -> None:
        self.position = 0

    def begin(self) -> None:
        """Start reading."""
        self.later(self.world.schedule.random.randrange(300), self._ask)

    def _ask(self) -> None:
        world = self.world
        if world.clients_stopped:
            return
        random = world.schedule.random
        if self.leader == NO_LEADER and self.find_leader() == NO_LEADER:
            self.later(2 * _BACKOFF_MS, self._ask)
            return
        if random.random() < 0.3:
            latest = Latest(self.partition)
            world.network.ask(self, self.leader, latest, TIMEOUT_MS, self._latest)
            return
        from_follower = random.random() < 0.4
        target = random.choice(list(world.brokers)) if from_follower else self.leader
        request = Read(self.partition, self.topic_id, self.position, from_follower)
        world.network.ask(
            self,
            target,
            request,
            TIMEOUT_MS,
            lambda answer: self._read(request, answer),
        )

    def _latest(self, answer: Produced | None) -> None:
        if answer is not None and answer.code is ErrorCode.none:
            self.world.ledger.latest(self.partition, answer)
        else:
            self.leader = NO_LEADER
        self._again()

    def _read(self, request: Read, answer: ReadBack | None) -> None:
        if answer is None or answer.code is not ErrorCode.none:
            self.leader = NO_LEADER
            if answer is not None and answer.code is ErrorCode.offset_out_of_range:
                self.position = 0
        else:
            entries = list(answer.entries)
            self.world.ledger.read(
                self.partition,
                request.topic_id,
                request.offset,
                entries,
                answer.leader_epoch,
                from_follower=request.from_follower,
            )
            self.position = request.offset + len(entries)
        self._again()

    def _again(self) -> None:
        self.later(self.world.schedule.random.randrange(80, 400), self._ask)
