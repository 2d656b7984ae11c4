"""Lives of a real cluster in which records are lost: brokers are killed, an election is unclean,
the cleaner removes what is superseded, and consumers join a group, commit, and leave it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from tests.journey.model.statements import Checked, UntrueError
from tests.journey.model.world import Cut
from tests.system.cluster_kept import SETTINGS as KEPT_SETTINGS
from tests.system.cluster_kept import KeptTopic
from tests.system.cluster_load import QUICK, WAIT_S, admin_of, create, wait_for
from tests.system.cluster_witness import SeenChecked
from tests.system.test_cluster_journey_truth import TOPIC, WEIGHTS, SeenLife

from ottla.client.admin.records import EARLIEST, offset_at
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition as ClientPartition
from ottla.records.control import ControlType
from ottla.testing import Cluster
from ottla.timelines.step import By

TEAMS: Final = ("team", "crew")
"""Groups with members; those of SeenLife have none."""
UNCLEAN: Final = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
SETTINGS: Final = {**QUICK, "log.cleaner.backoff.ms": 200}
SHORT: Final = ("join", "lose", "append", "join", "reset", "commit", "ask")
MORE: Final = {**WEIGHTS, "join": 4, "reset": 1, "lose": 1.5}
STEPS: Final = 16
KEYS: Final = (b"a", b"b", b"c", b"d")


class LossyLife(SeenLife):
    """Also what loses records, and members."""

    def __init__(self, seed: int, cluster: Cluster) -> None:
        super().__init__(seed, cluster)
        self.unclean: set[int] = set()
        """The leader epochs that began with an unclean election."""

    def run_steps(self, names: Sequence[str] | None = None) -> None:
        """These steps, or some of the seed."""
        create(self.cluster, TOPIC, config=UNCLEAN)
        self._look()
        self.append()
        for name in names or self.random.choices(list(MORE), list(MORE.values()), k=STEPS):
            self.did.append(name)
            getattr(self, name)()
            self._look_at_start()
            self.ask()
        for offset in range(len(self.seen.log) + 1):
            self._ask(offset)

    def _look_at_start(self) -> None:
        """Who leads after it was killed may have the log start of its last checkpoint, so that
        deleted records come back.
        """
        partition = ClientPartition(TOPIC, 0)
        with Client(self.cluster.bootstrap) as client:
            start = offset_at(client, self.cluster.leader(TOPIC), partition, EARLIEST)
        for broker in self.seen.brokers.values():
            assert start == broker.start or (start < broker.start and "lose" in self.did)
            broker.start = start

    def _answers(self, offset: int) -> list[dict[str, Any]]:
        """Once the leader knows that its followers have everything."""

        def told() -> list[dict[str, Any]] | None:
            answers, end = super(LossyLife, self)._answers(offset), len(self.seen.log)
            is_whole = all(one["log"]["high_watermark"] == end for one in answers)
            return answers if is_whole else None

        found: list[dict[str, Any]] = wait_for("the high watermark", told)
        return found

    def lose(self) -> None:
        """Two followers die, the leader takes more records and dies; a follower comes back alone,
        and leads without them.
        """
        last = self.cluster.leader(TOPIC)
        first, second = self.random.sample([one for one in self.cluster.brokers if one != last], 2)
        self.append()
        kept = len(self.seen.log)
        for broker in (first, second):
            self.cluster.kill(broker)
            wait_for(f"broker {broker} out of sync", lambda: broker not in self._in_sync())  # noqa: B023
            self._look()
        self.append()
        self.cluster.kill(last)
        self.cluster.start(first)
        assert self.cluster.wait_leader_other_than(last, TOPIC) == first
        self._lost(last, kept)
        self.append()
        for broker in (second, last):
            self.cluster.start(broker)
        self.cluster.wait_in_sync()
        self._look()

    def _lost(self, broker: int, end: int) -> None:
        seen = self.seen
        cut = Cut(broker, tuple(seen.log[end:]))
        seen.cuts.append(cut)
        del seen.log[end:]
        self._look()
        self.unclean.add(seen.states[-1][1].leader_epoch)

    def join(self) -> None:
        """A consumer joins a group, reads, commits some of it as a member, and leaves."""
        group, end = self.random.choice(TEAMS), len(self.seen.log)
        at = max(self.seen.positions.get(group, 0), self.seen.brokers[1].start)
        if at >= end:
            return
        offset = self.random.randint(at + 1, end)
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
            }
        )
        consumer.subscribe([TOPIC])
        try:
            wait_for("a message", lambda: self._reads(consumer, offset))
            with self.seen.call() as event:
                partition = TopicPartition(TOPIC, 0, offset)
                consumer.commit(offsets=[partition], asynchronous=False)
        finally:
            consumer.close()
        self.seen.committed(group, offset, event[0], By.MEMBER)

    def _reads(self, consumer: Consumer, offset: int) -> bool:
        message = consumer.poll(0.5)
        return message is not None and not message.error() and message.offset() >= offset - 1

    def reset(self) -> None:
        """A tool sets the offset of a group that has no members now."""
        group, start = self.random.choice(TEAMS), self.seen.brokers[1].start
        if group not in self.seen.positions:
            return
        offset = self.random.randint(start, len(self.seen.log))
        partitions = [TopicPartition(TOPIC, 0, offset)]
        admin = admin_of(self.cluster)
        with self.seen.call() as event:
            asked = [ConsumerGroupTopicPartitions(group, partitions)]
            admin.alter_consumer_group_offsets(asked)[group].result(WAIT_S)
        self.seen.committed(group, offset, event[0], By.OUTSIDE)

    def _check(self, offset: int, answer: dict[str, Any]) -> None:
        leader: Any = self.seen.brokers[self.cluster.leader(TOPIC)]
        seen: Any = self.seen
        LossyChecked(seen, leader, offset, answer, self.unclean).everything()


class LossyChecked(SeenChecked):
    """A journey beside what was seen, with what was lost."""

    def __init__(
        self, world: Any, broker: Any, offset: int, document: Any, unclean: set[int]
    ) -> None:
        super().__init__(world, broker, offset, document)
        self.unclean = unclean

    def _elections(self) -> None:
        led = {state.leader_epoch: state for _, state in self.world.states}
        for one in self.said["replicated"]["elections"] if self.said["replicated"] else ():
            state = led.get(one["leader_epoch"])
            if state is None:
                continue  # it was over before the test looked
            self._is(state.leader == one["leader"], "elected", one)
            is_unclean = one["leader_epoch"] in self.unclean
            self._is(one["unclean"] in (None, is_unclean), "unclean", one)
            start = self.world.epoch_starts[one["leader_epoch"]]
            self._is(one["start_offset"] in (None, start), "start offset", (one, start))
            for cut in one["dropped"]:
                Checked._dropped(self, cut)


def live_lossy(seed: int, folder: Path, names: Sequence[str] | None = None) -> LossyLife:
    """A whole life. Raises UntrueError for a journey that said what is not true."""
    with Cluster(3, SETTINGS, data=folder / str(seed)) as cluster:
        life = LossyLife(seed, cluster)
        life.run_steps(names)
        if "lose" in life.did:
            find_what_is_untrue(life)
    return life


def find_what_is_untrue(life: LossyLife) -> None:
    """The same answer with a clean election, with more that was dropped, or with a reader of what
    was dropped is not let pass.
    """
    offset = life.seen.cuts[-1].records[0].offset
    (answer, *_) = life._answers(offset)
    told = [one for one in answer["replicated"]["elections"] if one["unclean"]]
    if not told:
        return  # a leader that was down then does not know it
    for change, value in (("unclean", False), ("leader", 99), ("start_offset", 10**6)):
        said = told[-1][change]
        told[-1][change] = value
        with pytest.raises(UntrueError):
            life._check(offset, answer)
        told[-1][change] = said
    for cut in told[-1]["dropped"]:
        cut["to_offset"] += 50
        with pytest.raises(UntrueError):
            life._check(offset, answer)


def test_what_brokers_say_of_what_was_lost_is_true(tmp_path: Path) -> None:
    live_lossy(1, tmp_path, SHORT)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 10))
def test_what_brokers_say_of_what_was_lost_is_true_in_more_lives(seed: int, tmp_path: Path) -> None:
    live_lossy(seed, tmp_path)


# A compacted topic.


def live_kept(seed: int, cluster: Cluster, rounds: int) -> None:
    """Records of few keys, in transactions or not, which the cleaner of each broker compacts."""
    topic, random = f"kept-{seed}", Random(seed)
    create(cluster, topic, config=KEPT_SETTINGS)
    kept = KeptTopic(cluster, topic)

    def some() -> list[tuple[bytes, bool]]:
        count = random.randint(1, 3)
        return [(random.choice(KEYS), random.random() < 0.2) for _ in range(count)]

    for number in range(rounds):
        kept.append(*some())
        producer, transaction = kept.begin(*some())
        if number % 2 == 0:
            kept.append(*some())
            kept.check()  # while it is open
        outcome = random.choice((ControlType.commit, ControlType.abort))
        kept.end(producer, transaction, outcome)
        if number == rounds // 2:
            gone = cluster.leader(topic)
            cluster.kill(gone)
            cluster.wait_leader_other_than(gone, topic)
            kept.append(*some())
            cluster.start(gone)
            cluster.wait_in_sync()
    for _ in range(2):
        kept.append((b"last", False), (b"last", False))
    rules = kept.check()
    wait_for("the cleaner to rest", lambda: has_rested(kept))
    kept.check()
    for offset in rules.keys() - kept.read().keys():
        assert rules[offset]["may_be_removed"], (offset, rules[offset])
    find_what_is_untrue_of_keys(kept)


def has_rested(kept: KeptTopic) -> bool:
    """Whether the cleaner has done something, and does nothing more."""
    seen = kept.read()
    time.sleep(1.0)
    return len(seen) < len(kept.records) and kept.read() == seen


def find_what_is_untrue_of_keys(kept: KeptTopic) -> None:
    """That the latest record of a key is superseded, or the other way round."""
    said = [kept.told(offset) for offset in kept.present()]
    latest = next(one for one in said if reason_of(one)["kind"] == "latest")
    rule = latest["retention"]["rules"][0]
    other = {"kind": "superseded", "by_offset": len(kept.records) - 1}
    rule |= {"reason": other, "why": f"superseded by offset {other['by_offset']}"}
    with pytest.raises(UntrueError):
        kept.judge(latest["offset"], latest)


def reason_of(document: dict[str, Any]) -> dict[str, Any]:
    reason: dict[str, Any] = document["retention"]["rules"][0]["reason"]
    return reason


def test_what_brokers_say_of_keys_is_true(tmp_path: Path) -> None:
    with Cluster(3, SETTINGS, data=tmp_path / "cluster") as cluster:
        live_kept(1, cluster, 3)


@pytest.mark.full
def test_what_brokers_say_of_keys_is_true_in_more_lives(tmp_path: Path) -> None:
    with Cluster(3, SETTINGS, data=tmp_path / "cluster") as cluster:
        for seed in range(2, 10):
            live_kept(seed, cluster, 6)
