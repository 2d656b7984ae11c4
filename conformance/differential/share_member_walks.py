"""Seeded sequences of requests about the members of a share group (KIP-932): they join, beat,
subscribe to something else, leave and come back, right or wrong, and the group is described.

What would depend on the time or on ids that a broker draws is left out: assignments follow at once,
the states of the partitions are there before a walk, and a member subscribes to one topic of one
partition, which all its subscribers have. Who has which of several partitions depends in Kafka on
the order of hash tables (see `share_scripts.share_members`).
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Final

from conformance.differential.session import Session
from conformance.differential.sharing import Sharing
from ottla.protocol.errors import ErrorCode

STEPS: Final = 30
SEEDS_OF_A_SCRIPT: Final = 10
FIRST_SEEDS: Final = range(0, 100, SEEDS_OF_A_SCRIPT)
MEMBERS: Final = ("a", "b", "c", "d")
TOPICS: Final = ("t", "u")
SUBSCRIPTIONS: Final = (("t",), ("t",), ("u",), ("t", "missing"), ("missing",), ())
JOIN, LEAVE = 0, -1


class _Walk:
    """One group, and the requests that may come next."""

    def __init__(self, session: Session, seed: int) -> None:
        self._session = session
        self._random = Random(seed)
        self._sharing = Sharing(session, f"g{seed}")
        self._epochs: dict[str, int] = {}
        """Of those that are in the group, as they know it."""

    def run(self) -> None:
        self._prepare()
        for _ in range(STEPS):
            self._step(self._random.choice(MEMBERS))
        self._sharing.describe()

    def _prepare(self) -> None:
        """Makes the states of the partitions: that goes on beside the heartbeats. One after the
        other, so that both brokers get through as many epochs.
        """
        epoch = JOIN
        for topic in TOPICS:
            epoch = self._has(topic, epoch)
        self._sharing.beat("z", LEAVE)
        self._sharing.describe()

    def _has(self, topic: str, epoch: int) -> int:
        """The epoch of a member of the preparation, once it has the topic."""
        beat = partial(self._sharing.beat, "z", is_recorded=False)
        epoch = int(beat(epoch, (topic,)).member_epoch)
        wanted = {self._session.id_of(topic)}

        def has_it() -> bool:
            nonlocal epoch
            answer = beat(epoch, (topic,))
            epoch = answer.member_epoch
            return {each.topic_id for each in answer.assignment.topic_partitions} == wanted

        self._session.wait(f"the state of {topic} is there", has_it)
        return epoch

    def _step(self, member: str) -> None:
        match self._random.choices(
            ("beat", "join", "subscribe", "leave", "wrong", "describe", "delete"),
            (12, 6, 4, 3, 4, 3, 1),
        )[0]:
            case "beat" if member in self._epochs:
                self._beat(member, self._epochs[member])
            case "beat" | "join":
                self._beat(member, JOIN, self._random.choice(SUBSCRIPTIONS[:-1]))
            case "subscribe" if member in self._epochs:
                topics = self._random.choice(SUBSCRIPTIONS)
                self._beat(member, self._epochs[member], topics)
            case "leave":
                self._sharing.beat(member, LEAVE)
                self._epochs.pop(member, None)
            case "wrong" | "subscribe":
                known = self._epochs.get(member, 1)
                epoch = max(1, known + self._random.choice((-2, -1, -1, 1, 7)))
                self._sharing.beat(member, epoch, self._random.choice((None, ("u",))))
            case "describe":
                self._sharing.describe()
            case "delete" if self._epochs:
                self._sharing.delete()

    def _beat(self, member: str, epoch: int, topics: tuple[str, ...] | None = None) -> None:
        answer = self._sharing.beat(member, epoch, topics)
        match ErrorCode(answer.error_code):
            case ErrorCode.none:
                self._epochs[member] = answer.member_epoch
            case ErrorCode.unknown_member_id | ErrorCode.fenced_member_epoch:
                self._epochs.pop(member, None)


def walk(session: Session, seed: int) -> None:
    """The walk of this seed; both topics are there."""
    _Walk(session, seed).run()


def share_member_walks(session: Session, first: int) -> None:
    """The walks of ten seeds from the first one on."""
    for topic in TOPICS:
        session.create(topic, 1)
    for seed in range(first, first + SEEDS_OF_A_SCRIPT):
        walk(session, seed)


SHARE_MEMBER_WALKS: Final = {
    f"share_member_walks_{first}": partial(share_member_walks, first=first) for first in FIRST_SEEDS
}
