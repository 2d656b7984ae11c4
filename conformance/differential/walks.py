"""Seeded sequences of transactional requests: a walk draws each next request, right or wrong."""

from __future__ import annotations

from random import Random
from typing import Final

from conformance.differential.session import Session
from ottla.shards.step import ProducerEpoch

STEPS: Final = 40
WORDS: Final = ("t1", "t2")
PARTITIONS: Final = (("a", 0), ("a", 1), ("b", 0))
WRONG: Final = 0.12
"""How often a request is of a producer that is not the present one."""


class _Walk:
    """The producers as a client knows them, and the requests that may come next."""

    def __init__(self, session: Session, random: Random) -> None:
        self._session = session
        self._random = random
        self._producers: dict[str, ProducerEpoch] = {}
        self._sequences: dict[tuple[ProducerEpoch, tuple[str, int]], int] = {}

    def begin(self) -> None:
        for topic in ("a", "b"):
            self._session.create(topic)
        for word in WORDS:
            self._producers[word] = self._session.init(word)

    def step(self) -> None:
        word = self._random.choice(WORDS)
        producer = self._producer(word)
        match self._random.choices(
            ("init", "produce", "old produce", "end", "old end", "offsets", "look"),
            (1, 6, 4, 4, 2, 2, 2),
        )[0]:
            case "init":
                expected = producer if self._random.random() < 0.5 else ProducerEpoch(-1, -1)
                self._became(word, self._session.init(word, 5, expected))
            case "produce":
                self._produce(word, producer, 12)
            case "old produce":
                partition = self._random.choice(PARTITIONS)
                if self._random.random() < 0.8:
                    self._session.add(word, producer, [partition])
                self._produce(word, producer, 11, partition)
            case "end":
                is_commit = self._random.random() < 0.6
                self._became(word, self._session.end(word, producer, 5, is_commit=is_commit))
            case "old end":
                self._session.end(word, producer, 3, is_commit=self._random.random() < 0.6)
            case "offsets":
                offset = self._random.randrange(100)
                self._session.commit_offset(word, producer, "g", "a", offset, 5)
            case "look":
                self._session.describe(*WORDS)
                for partition in PARTITIONS:
                    self._session.fetch(partition)
                self._session.describe_producers(*PARTITIONS)

    def _producer(self, word: str) -> ProducerEpoch:
        producer = self._producers[word]
        if self._random.random() < WRONG:
            # Of a future epoch see `scripts.a_batch_of_a_future_epoch`.
            return producer._replace(epoch=max(0, producer.epoch - 1))
        return producer

    def _became(self, word: str, producer: ProducerEpoch) -> None:
        """A refused request of an earlier epoch does not bring its producer back."""
        present = self._producers[word]
        is_earlier = producer.producer_id == present.producer_id and producer.epoch < present.epoch
        if producer.producer_id >= 0 and not is_earlier:
            self._producers[word] = producer

    def _produce(
        self,
        word: str,
        producer: ProducerEpoch,
        version: int,
        partition: tuple[str, int] | None = None,
    ) -> None:
        partition = partition or self._random.choice(PARTITIONS)
        sequence = self._sequences.get((producer, partition), 0)
        self._session.produce(word, producer, partition, ["x"], version, sequence=sequence)
        self._sequences[producer, partition] = sequence + 1


def walk(session: Session, seed: int) -> None:
    """The walk of this seed."""
    going = _Walk(session, Random(seed))
    going.begin()
    for _ in range(STEPS):
        going.step()
