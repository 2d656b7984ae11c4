"""Seeded sequences of requests about a share group (KIP-932): members fetch, accept, release,
reject, right or wrong; sessions end, records come, and the same ones come again.

What would depend on the time is left out: a fetch does not wait, locks outlast a walk, and all
members have opened the partition before its first record. Apache Kafka answers the end of a session
before the release of its records is written, and hands them out only after that (KafkaApis calls
SharePartitionManager.releaseSession and does not wait): the walk waits until it is (`_Barrier`).

No fetch releases records, those that are released come with a ShareAcknowledge. What a ShareFetch
acknowledges Apache Kafka writes while it reads for the same request
(KafkaApis.handleShareFetchRequest waits for both at the end): whether the fetch gets what it
releases depends on which is faster. See `share_scripts.a_fetch_that_releases`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import groupby
from random import Random
from typing import Final

from conformance.differential.session import NotInTimeError, Session
from conformance.differential.sharing import (
    ACCEPT,
    FETCHES_MS,
    GAP,
    LAST_EPOCH,
    REJECT,
    RELEASE,
    Sharing,
)

STEPS: Final = 30
SEEDS_OF_A_SCRIPT: Final = 5
FIRST_SEEDS: Final = range(0, 50, SEEDS_OF_A_SCRIPT)
"""Those from 20, 30 and 45 came upon records of a session that had just ended, those from 35 upon a
first fetch that acknowledges something of an unknown type.
"""
MEMBERS: Final = ("a", "b", "c")
MAX_PRODUCED: Final = 4


class _Barrier:
    """Another topic of the group, with a member of its own. A broker's writes of one group to a
    share coordinator follow one another (Kafka's PersisterStateManager has one request under way):
    once an acknowledgement here is answered, everything before it is written.
    """

    def __init__(self, session: Session, group: str, topic: str, **settings: str) -> None:
        session.create(topic, 1)
        self._sharing = Sharing(session, group, topic, **settings)
        self._member = "z"

    def open(self) -> None:
        self._sharing.join(self._member)
        self._sharing.open(self._member)

    def wait(self) -> None:
        self._sharing.produce("")
        found = self._sharing.fetch(self._member, wait_ms=FETCHES_MS)
        if not found:
            raise NotInTimeError("a record is there, and nobody gets it")
        self._sharing.acknowledge(self._member, [(first, last, ACCEPT) for first, last in found])


class _Walk:
    """One group on a topic of its own."""

    def __init__(self, session: Session, seed: int) -> None:
        random = self._random = Random(seed)
        topic = f"t{seed}"
        session.create(topic, 1)
        limit = random.choice(("2", "3", "5"))
        self._sharing = Sharing(session, f"g{seed}", topic, delivery_count_limit=limit)
        self._barrier = _Barrier(session, f"g{seed}", f"b{seed}", delivery_count_limit=limit)
        self._held: dict[str, set[int]] = {member: set() for member in MEMBERS}
        self._produced = 0

    def run(self) -> None:
        self._sharing.join("a")
        for member in MEMBERS:
            self._sharing.open(member)
        self._barrier.open()
        for _ in range(STEPS):
            self._step(self._random.choice(MEMBERS))
        self._sharing.offsets(self._sharing.topic)

    def _step(self, member: str) -> None:
        random, sharing = self._random, self._sharing
        match random.choices(
            ("produce", "fetch", "acknowledge", "wrong", "end", "offsets"), (4, 8, 6, 2, 1, 1)
        )[0]:
            case "produce":
                count = random.randint(1, MAX_PRODUCED)
                numbers = range(self._produced, self._produced + count)
                sharing.produce(*map(str, numbers))
                self._produced += count
            case "fetch":
                self._fetch(member)
            case "acknowledge":
                acks = self._acks(member)
                if acks:
                    sharing.acknowledge(member, acks, version=random.choice((1, 2)))
            case "wrong":
                self._wrong(member)
            case "end":
                # What it has is released.
                sharing.acknowledge(member, self._acks(member), epoch=LAST_EPOCH)
                self._held[member] = set()
                self._barrier.wait()
            case "offsets":
                sharing.offsets(sharing.topic)

    def _fetch(self, member: str) -> None:
        random = self._random
        acks = without_releases(self._acks(member)) if random.random() < 0.3 else []
        found = self._sharing.fetch(
            member,
            acks,
            version=random.choice((1, 2)),
            max_records=random.choice((1, 2, 5, 500)),
            share_acquire_mode=random.choice((0, 0, 1)),
        )
        for first, last in found:
            self._held[member].update(range(first, last + 1))

    def _acks(self, member: str) -> list[tuple[int, ...]]:
        """Of some of the records that the member has, in runs."""
        random, held = self._random, self._held[member]
        chosen = sorted(each for each in sorted(held) if random.random() < 0.7)
        held.difference_update(chosen)
        acks: list[tuple[int, ...]] = []
        for run in _runs(chosen):
            types = [random.choice((ACCEPT, ACCEPT, RELEASE, REJECT, GAP)) for _ in run]
            is_one = random.random() < 0.5
            acks.append((run[0], run[-1], *(types[:1] if is_one else types)))
        return acks

    def _wrong(self, member: str) -> None:
        random = self._random
        first = random.randrange(self._produced + 2)
        last = first + random.randrange(-1, 3)
        acks = [(first, last, random.choice((ACCEPT, RELEASE, REJECT, 7)))]
        self._held[member].difference_update(range(first, last + 1))
        epoch = random.choice((None, None, 99))
        if random.random() < 0.5:
            self._sharing.acknowledge(member, acks, epoch=epoch)
        else:
            self._sharing.fetch(member, without_releases(acks), epoch=epoch, max_records=1)


def without_releases(acks: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The same, but what was to be released is accepted."""
    return [
        (first, last, *(ACCEPT if each == RELEASE else each for each in types))
        for first, last, *types in acks
    ]


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Those that follow one another."""
    found = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    return [[number for _, number in run] for _, run in found]


def share_walks(session: Session, first: int) -> None:
    """The walks of some seeds from the first one on."""
    for seed in range(first, first + SEEDS_OF_A_SCRIPT):
        _Walk(session, seed).run()


SHARE_WALKS: Final = {
    f"share_walks_{first}": partial(share_walks, first=first) for first in FIRST_SEEDS
}
