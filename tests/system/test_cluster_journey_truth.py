"""Lives of a real cluster: whichever broker is asked, each journey is true of what was seen."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from confluent_kafka import TopicPartition
from tests.journey.model.statements import UntrueError
from tests.system.cluster_load import QUICK, WAIT_S, admin_of, create, produce, wait_for
from tests.system.cluster_witness import SeenChecked, Witness
from tests.system.test_cluster_groups import commit

from ottla.client.admin.asked_journeys import asked_journey
from ottla.testing import Cluster

TOPIC: Final = "seen"
GROUPS: Final = ("readers", "slow", "other")
STEPS: Final = 14
OFFSETS_ASKED: Final = 4
WEIGHTS: Final = {
    "append": 6, "commit": 5, "set_back": 1, "forget": 1, "remove": 1, "elect": 1, "restart": 1,
}  # fmt: skip


class SeenLife:
    """What happens next is drawn from the seed; each step is waited for."""

    def __init__(self, seed: int, cluster: Cluster) -> None:
        self.random = Random(seed)
        self.cluster = cluster
        self.seen = Witness(iter(cluster.brokers))
        self.did: list[str] = []

    def run(self) -> None:
        create(self.cluster, TOPIC)
        self._look()
        self.append()
        for _ in range(STEPS):
            (name,) = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))
            self.did.append(name)
            getattr(self, name)()
            self.ask()
        for offset in range(len(self.seen.log) + 1):
            self._ask(offset)
        self.find_what_is_untrue(len(self.seen.log) - 1)

    def find_what_is_untrue(self, offset: int) -> None:
        """The same answer, with another leader or time, is not let pass."""
        for change in ({"broker": 99}, {"when": {"since_ms": 1, "until_ms": 1, "exact": True}}):
            (answer, *_) = self._answers(offset)
            answer["appended"] |= change
            with pytest.raises(UntrueError):
                self._check(offset, answer)

    def _look(self) -> None:
        told = self.cluster.state.partition(TOPIC, 0)
        assert told is not None
        self.seen.saw_state(told)

    def append(self) -> None:
        count = self.random.randint(1, 4)
        with self.seen.call() as event:
            told = produce(self.cluster, TOPIC, count, client_id="seen-client")
        assert told == ["NO_ERROR"] * count
        self.seen.appended(count, event[0], "seen-client")

    def commit(self) -> None:
        group, start = self.random.choice(GROUPS), self.seen.brokers[1].start
        at = max(self.seen.positions.get(group, start), start)
        if at < len(self.seen.log):
            self._commit(group, self.random.randint(at + 1, len(self.seen.log)))

    def set_back(self) -> None:
        group, start = self.random.choice(GROUPS), self.seen.brokers[1].start
        if self.seen.positions.get(group, 0) > start:
            self._commit(group, self.random.randint(start, self.seen.positions[group]))

    def _commit(self, group: str, offset: int) -> None:
        with self.seen.call() as event:
            commit(self.cluster, group, TOPIC, offset)
        self.seen.committed(group, offset, event[0])

    def forget(self) -> None:
        group = self.random.choice(GROUPS)
        if group in self.seen.positions:
            admin = admin_of(self.cluster)
            with self.seen.call() as event:
                admin.delete_consumer_groups([group])[group].result(WAIT_S)
            self.seen.forgotten(group, event[0], "DeleteGroups")

    def remove(self) -> None:
        start, end = self.seen.brokers[1].start, len(self.seen.log)
        if end - start < 4:
            return
        to = self.random.randint(start + 1, end - 2)
        partition, admin = TopicPartition(TOPIC, 0, to), admin_of(self.cluster)
        with self.seen.call() as event:
            (work,) = admin.delete_records([partition]).values()
            work.result(WAIT_S)
        self.seen.removed(to, event[0])

    def elect(self) -> None:
        leader = self.cluster.leader(TOPIC)
        self.cluster.elect(self._other(leader), TOPIC)
        self._look()

    def restart(self) -> None:
        """A broker is gone for a few appends, then follows again."""
        gone = self.random.choice(list(self.cluster.brokers))
        (self.cluster.kill if self.random.random() < 0.5 else self.cluster.stop)(gone)
        wait_for(f"broker {gone} out of sync", lambda: gone not in self._in_sync())
        self._look()
        self.append()
        self.cluster.start(gone)
        self.cluster.wait_in_sync()
        self._look()

    def _in_sync(self) -> list[int]:
        told = self.cluster.state.partition(TOPIC, 0)
        return list(told["isr"]) if told else []

    def _other(self, leader: int) -> int:
        return self.random.choice([one for one in self.cluster.brokers if one != leader])

    def ask(self) -> None:
        end = len(self.seen.log)
        for offset in sorted({self.random.randint(0, end) for _ in range(OFFSETS_ASKED)}):
            self._ask(offset)

    def _ask(self, offset: int) -> None:
        for answer in self._answers(offset):
            assert "error" not in answer, answer
            self._check(offset, answer)

    def _answers(self, offset: int) -> list[dict[str, Any]]:
        """Of each running broker: another one than the leader passes the question on."""
        question = {"journey": 1, "topic": TOPIC, "partition": 0, "offset": offset}
        return [
            asked_journey(broker.bootstrap, question)
            for broker in self.cluster.brokers.values()
            if broker.running
        ]

    def _check(self, offset: int, answer: dict[str, Any]) -> None:
        leader: Any = self.seen.brokers[self.cluster.leader(TOPIC)]
        seen: Any = self.seen
        SeenChecked(seen, leader, offset, answer).everything()


def live_seen(seed: int, folder: Path) -> None:
    """A whole life. Raises UntrueError for a journey that said what is not true."""
    with Cluster(3, QUICK, data=folder / str(seed)) as cluster:
        SeenLife(seed, cluster).run()


def test_what_real_brokers_say_is_true(tmp_path: Path) -> None:
    live_seen(1, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 10))
def test_what_real_brokers_say_is_true_in_more_lives(seed: int, tmp_path: Path) -> None:
    live_seen(seed, tmp_path)
