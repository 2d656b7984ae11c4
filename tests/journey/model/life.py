"""A random life of a partition, by seed, with journeys that are checked on the way."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

from tests.journey.model.statements import check
from tests.journey.model.world import PIPELINE_GROUP, Broker, World

from ottla.journey.offset_history import MAX_SKEW_MS
from ottla.timelines.step import By

GROUPS: Final = ("readers", "slow")
LENGTH: Final = 60
OFFSETS_ASKED: Final = 4
CALM: Final = ("clock", "lose_file", "zombie", "odd_commit")
"""What most lives do not have."""
ABORTING: Final = 8
"""The id of the producer whose transactions are aborted in some lives."""


class Life:
    """What happens next is drawn from the seed."""

    aborts = False
    """Whether the transactions of a producer are aborted."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        cluster = self.random.random() < 0.75
        self.world = World(folder, 3 if cluster else 1, self.random.choice((1500, 4000, 1 << 20)))
        self.world.reads_committed = self.aborts
        without = {name for name in CALM if self.random.random() < 0.7}
        self.without = without if "clock" in without else without | {"lose_file"}
        weights = {
            "tick": 6, "append": 10, "fetch": 14 if cluster else 0, "commit": 6, "deliver": 3,
            "flush": 4, "roll": 1, "remove": 1, "isr": 3 if cluster else 0,
            "hear": 4 if cluster else 0, "stop": 1, "kill": 1, "start": 3,
            "elect": 1 if cluster else 0, "ask": 2, "clock": 1, "lose_file": 0.5,
            "zombie": 1 if cluster else 0, "odd_commit": 1, "set_back": 1, "reset": 1, "forget": 1,
        }  # fmt: skip
        self.names = [name for name in weights if name not in self.without]
        self.weights = [weights[name] for name in self.names]
        self.did: list[str] = []

    def run(self) -> None:
        for _ in range(LENGTH):
            (name,) = self.random.choices(self.names, self.weights)
            self.did.append(name)
            getattr(self, name)()
        for broker in self.world.brokers.values():
            self._start(broker)
        self.elect()
        for broker in self.world.brokers.values():
            self.world.tell(broker)
        self.fetch()
        self.ask()

    # What happens.

    def tick(self) -> None:
        self.world.ms += self.random.choice((1, 3, 20, 90, 150, 1000, 20_000))

    def append(self) -> None:
        leader = self.world.leader()
        if leader is not None:
            self._append(leader)

    def zombie(self) -> None:
        """A leader that has not heard of its successor goes on."""
        for broker in self.world.brokers.values():
            if broker.leads and broker is not self.world.leader():
                self._append(broker)

    def _append(self, leader: Broker) -> None:
        self.world.ms += self.random.choice((0, 1, 5, 40))
        self.world.producer_ahead_ms = self.random.choice((0, 0, -5, 3000))
        client, producer = self.random.choice((("a", -1), ("a", 7), ("b", -1), ("b", 8)))
        is_control = producer >= 0 and self.random.random() < 0.2
        count = 1 if is_control else self.random.randint(1, 5)
        leader.append(
            count,
            "" if is_control else client,
            producer,
            is_control=is_control,
            is_aborted=self.aborts and producer == ABORTING and not is_control,
        )

    def fetch(self) -> None:
        leader = self.world.leader()
        for broker in self.world.brokers.values():
            if leader is None or broker is leader or not broker.is_alive:
                continue
            if broker.heard and leader.heard and self.random.random() < 0.8:
                if broker.heard.leader_epoch != leader.heard.leader_epoch:
                    continue
                self.world.ms += self.random.choice((0, 1, 2, 30))
                broker.fetch(leader, self.random.choice((1, 3, 100)))

    def isr(self) -> None:
        """The leader drops who does not follow, and takes who has caught up."""
        leader, world = self.world.leader(), self.world
        if leader is None:
            return
        caught_up = [
            number
            for number in world.brokers
            if number == leader.number or leader.fetches.get(number, -1) >= leader.high
        ]
        if self.random.random() < 0.4:
            caught_up = [
                one for one in caught_up if one == leader.number or self.random.random() < 0.5
            ]
        alive = [one for one in caught_up if world.brokers[one].is_alive]
        if tuple(alive) != world.state.isr:
            world.change_isr(tuple(alive))
            world.tell(leader)

    def hear(self) -> None:
        for broker in self.world.brokers.values():
            if self.random.random() < 0.6:
                self.world.tell(broker)

    def stop(self) -> None:
        self._leave(kill=False)

    def kill(self) -> None:
        self._leave(kill=True)

    def _leave(self, *, kill: bool) -> None:
        world = self.world
        broker = self.random.choice(list(world.brokers.values()))
        if not broker.is_alive:
            return
        if kill:
            lost = self.random.choice((0, 0, 0, 2, 5))
            broker.kill(lost, self.random.choice((0, 0, 40)))
        else:
            broker.stop()
        if not world.is_cluster:
            return
        state = world.state
        isr = tuple(one for one in state.isr if one != broker.number) or state.isr
        if state.leader == broker.number:
            alive = [one for one in isr if world.brokers[one].is_alive]
            world.elect(self.random.choice(alive) if alive else -1, isr)
        elif isr != state.isr:
            world.change_isr(isr)

    def start(self) -> None:
        for broker in self.world.brokers.values():
            if self.random.random() < 0.6:
                self._start(broker)

    def _start(self, broker: Broker) -> None:
        world = self.world
        if broker.is_alive:
            return
        world.ms += self.random.choice((5, 300))
        broker.boot()
        may_lead = world.state.leader == -1 and broker.number in world.state.isr
        if may_lead or not world.is_cluster:
            world.elect(broker.number, world.state.isr)
        world.tell(broker)

    def elect(self) -> None:
        """Any living broker leads, in sync or not."""
        world = self.world
        alive = [number for number, broker in world.brokers.items() if broker.is_alive]
        if not alive or not world.is_cluster:
            return
        world.ms += self.random.choice((1, 50, 3000))
        if self.random.random() < 0.4:
            chosen = self.random.choice(alive)
            is_in = chosen in world.state.isr
            world.elect(chosen, world.state.isr if is_in else (chosen,))
        elif world.state.leader not in alive:
            chosen = next((one for one in alive if one in world.state.isr), alive[0])
            is_in = chosen in world.state.isr
            world.elect(chosen, world.state.isr if is_in else (chosen,))
        if self.random.random() < 0.7:
            world.tell(world.brokers[world.state.leader])  # a living one

    def roll(self) -> None:
        for broker in self.world.brokers.values():
            if broker.is_alive and self.random.random() < 0.7:
                broker.roll()

    def remove(self) -> None:
        leader = self.world.leader()
        if leader is None or len(leader.bases) < 2 or leader.bases[1] > leader.high:
            return
        leader.remove_before(leader.bases[1], self.random.choice(("retention.ms", "DeleteRecords")))

    def flush(self) -> None:
        for broker in self.world.brokers.values():
            if broker.is_alive:
                broker.flush()

    # The groups.

    def _may_commit(self, group: str) -> Broker | None:
        coordinator, leader = self.world.coordinator(group), self.world.leader()
        return leader if leader and coordinator and coordinator.is_alive else None

    def commit(self) -> None:
        group = self.random.choice(GROUPS)
        leader = self._may_commit(group)
        if leader is None:
            return
        self.world.ms += self.random.choice((0, 1, 10))
        at = max(self.world.positions.get(group, leader.start), leader.start)
        if at < leader.high:
            self.world.commit(group, self.random.randint(at + 1, leader.high))

    def odd_commit(self) -> None:
        """The same offset again, or one beyond the end."""
        group = self.random.choice(GROUPS)
        if self._may_commit(group) is None:
            return
        at = self.world.positions.get(group, 0)
        self.world.commit(group, at + self.random.choice((0, 0, 20)))
        # No broker can tell whether it was before the next append by less than clocks may differ.
        self.world.ms += 2 * MAX_SKEW_MS

    def set_back(self) -> None:
        group = self.random.choice(GROUPS)
        leader = self._may_commit(group)
        if leader is not None and self.world.positions.get(group, 0) > leader.start:
            self.world.commit(group, self.random.randint(leader.start, self.world.positions[group]))

    def reset(self) -> None:
        """A tool sets the group, perhaps past messages that it has not read."""
        group = self.random.choice(GROUPS)
        leader = self._may_commit(group)
        if leader is not None and leader.start < leader.high:
            self.world.commit(group, self.random.randint(leader.start, leader.high), by=By.OUTSIDE)

    def forget(self) -> None:
        group = self.random.choice(GROUPS)
        if self._may_commit(group) is not None and group in self.world.positions:
            why = ("OffsetDelete", "DeleteGroups", "offsets.retention.minutes")
            self.world.forget(group, self.random.choice(why))

    def says_begin(self) -> bool:
        """Whether the pipeline says where the next batch begins."""
        return self.random.random() < 0.8

    def deliver(self) -> None:
        leader = self._may_commit(PIPELINE_GROUP)
        world = self.world
        if leader is None:
            return
        if world.delivered_to > leader.high:
            world.delivered_to = leader.high  # it found that its records are gone
        if max(world.delivered_to, leader.start) < leader.high:
            world.delivered_to = max(world.delivered_to, leader.start)
            world.deliver(leader, leader.high, with_begin=self.says_begin())

    # Accidents.

    def clock(self) -> None:
        """The clocks of all brokers are set, so that they do not differ. What was lost before, or
        is lost with a file, cannot tell that they were set back.
        """
        if not all(broker.is_alive for broker in self.world.brokers.values()):
            return
        for broker in self.world.brokers.values():
            broker.flush(all_of_them=True)
        ahead_ms = self.random.choice((0, -5000, -70, 200, 60_000))
        for broker in self.world.brokers.values():
            broker.set_clock(ahead_ms)

    def lose_file(self) -> None:
        for broker in self.world.brokers.values():
            for file in list(broker.path.glob("*.timeline"))[:1]:
                file.unlink()

    # Journeys.

    def ask(self) -> None:
        leader = self.world.leader()
        if leader is None:
            return
        end = len(leader.log)
        some = [self.random.randint(0, end) for _ in range(OFFSETS_ASKED)]
        for offset in sorted({*some, max(end - 1, 0)}):
            check(self.world, leader, offset)


class AbortedLife(Life):
    """The transactions of one producer are aborted, and the pipeline reads only committed ones."""

    aborts = True


class RestartedLife(Life):
    """The query begins again with another checkpoint, in the same group and table. As shipped, it
    says of its first batch where it began.
    """

    number = 0

    def says_begin(self) -> bool:
        return self.world.batch == 0

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.world.checkpoint = "query 0"

    def deliver(self) -> None:
        world = self.world
        if world.delivered_to and self.random.random() < 0.15:
            end = max((broker.high for broker in world.brokers.values()), default=0)
            world.batch, world.delivered_to = 0, self.random.choice((0, world.delivered_to, end))
            self.number += 1
            world.checkpoint = f"query {self.number}"
        super().deliver()


class RemadeLife(Life):
    """The pipeline's group is deleted, too, and its query begins again, with another checkpoint."""

    def forget(self) -> None:
        if self.random.random() < 0.4 and self._may_commit(PIPELINE_GROUP) is not None:
            world = self.world
            if PIPELINE_GROUP in world.positions:
                world.forget(PIPELINE_GROUP, "DeleteGroups")
                world.batch, world.delivered_to = 0, self.random.randint(0, world.delivered_to)
        super().forget()


def live(seed: int, folder: Path, life: type[Life] = Life) -> None:
    """A whole life. Raises UntrueError for a journey that said what is not true."""
    own = folder / str(seed)
    own.mkdir()
    life(seed, own).run()
