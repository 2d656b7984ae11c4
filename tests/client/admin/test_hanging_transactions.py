"""Which open transactions hang."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ottla.client.admin.hanging_transactions import find_hanging
from ottla.client.admin.transactions import (
    DescribedTransaction,
    ListedTransaction,
    OpenProducer,
)
from ottla.client.topic_partition import TopicPartition

PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1)]
BEFORE_MS = 5_000
ONE = OpenProducer("t", 0, 7, 3, -1, 12, BEFORE_MS)
COORDINATED = OpenProducer("t", 0, 8, 0, -1, 13, BEFORE_MS)
YOUNG = OpenProducer("t", 1, 9, 0, -1, 0, BEFORE_MS + 1)


class Brokers:
    """Answers about producers in turn; the last one stays. Producer 8 has a coordinator."""

    def __init__(self, *answers: Sequence[OpenProducer]) -> None:
        self.answers = list(answers)
        self.filters: list[set[int]] = []

    def open_producers(
        self, partitions: Iterable[tuple[str, int]]
    ) -> tuple[list[OpenProducer], dict[tuple[str, int], str]]:
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        wanted = set(partitions)
        return [each for each in found if each.topic_partition in wanted], {
            ("t", 2): "it has no leader"
        }

    def listed(self, *, producer_ids: Iterable[int]) -> list[ListedTransaction]:
        self.filters.append(set(producer_ids))
        return [ListedTransaction("x", 1, "Ongoing", 8)]

    def described(self, names: Iterable[str]) -> dict[str, DescribedTransaction]:
        all_of_it = {
            "x": DescribedTransaction("x", 1, "Ongoing", 8, 0, 60_000, 0, (PARTITIONS[0],))
        }
        return {name: all_of_it[name] for name in names}


def found_by(brokers: Any) -> list[OpenProducer]:
    found, why = find_hanging(brokers, PARTITIONS, BEFORE_MS)
    assert why == {("t", 2): "it has no leader"}
    return found


def test_it_is_old_and_has_no_coordinator() -> None:
    brokers = Brokers([ONE, COORDINATED, YOUNG])
    assert found_by(brokers) == [ONE]
    assert brokers.filters == [{7, 8}]


def test_one_that_ended_meanwhile_does_not_hang() -> None:
    assert found_by(Brokers([ONE], [])) == []
    assert found_by(Brokers([ONE], [replace(ONE, first_offset=20)])) == []


def test_without_an_open_transaction_no_coordinator_is_asked() -> None:
    brokers = Brokers([])
    assert found_by(brokers) == []
    assert brokers.filters == []
