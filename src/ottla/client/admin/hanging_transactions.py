"""Finds hanging transactions: those that are open in a partition, and that no coordinator will end
(KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.client.admin.transactions import DescribedTransaction, OpenProducer, Transactions
from ottla.client.topic_partition import TopicPartition

ONGOING: Final = "Ongoing"
PREPARED: Final = ("PrepareCommit", "PrepareAbort")
OPEN: Final = (ONGOING, *PREPARED)


@dataclass(frozen=True)
class HangingTransaction:
    """An open transaction that no coordinator will end, in one partition."""

    topic: str
    partition: int
    first_offset: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_write_ms: int


def find_hanging(
    transactions: Transactions, partitions: Sequence[tuple[str, int]], before_ms: int
) -> tuple[list[OpenProducer], dict[TopicPartition, str]]:
    """The hanging transactions of these partitions without a write after `before_ms`; and for the
    partitions that could not be asked, the reason. Raises ClientError.
    """
    producers, why = transactions.open_producers(partitions)
    old = [each for each in producers if each.last_write_ms <= before_ms]
    return not_ended(transactions, which_hang(old, *coordinated(transactions, old))), why


def coordinated(
    transactions: Transactions, producers: Iterable[OpenProducer]
) -> tuple[dict[int, str], Mapping[str, DescribedTransaction]]:
    """The transactional ids of producers by producer id, and the descriptions of those ids."""
    wanted = {each.producer_id for each in producers}
    # An empty filter would list every id.
    listed = transactions.listed(producer_ids=wanted) if wanted else []
    ids = {each.producer_id: each.transactional_id for each in listed}
    return ids, transactions.described(ids.values())


def which_hang(
    producers: Iterable[OpenProducer],
    transactional_ids: Mapping[int, str],
    described: Mapping[str, DescribedTransaction],
) -> list[OpenProducer]:
    """Those whose transaction no coordinator will end (KIP-664).

    The open transaction of a producer in a partition hangs if the producer's transactional id is
    unknown (`transactional_ids`, by producer id), or if that id's transaction lacks the partition.
    """
    return [
        each
        for each in producers
        if not has_partition(described.get(transactional_ids.get(each.producer_id, "")), each)
    ]


def has_partition(described: DescribedTransaction | None, each: OpenProducer) -> bool:
    """Whether the coordinator will write a marker to this partition."""
    return (
        described is not None
        and described.state in OPEN
        and each.topic_partition in described.partitions
    )


def not_ended(transactions: Transactions, found: list[OpenProducer]) -> list[OpenProducer]:
    """Those still open. A transaction that its coordinator completed after the first question
    looks as if it hung; its marker is in the log by now.
    """
    still, _ = transactions.open_producers({each.topic_partition for each in found})
    open_now = {(each.topic_partition, each.producer_id, each.first_offset) for each in still}
    return [
        each
        for each in found
        if (each.topic_partition, each.producer_id, each.first_offset) in open_now
    ]


def hanging_transaction(each: OpenProducer) -> HangingTransaction:
    return HangingTransaction(
        each.topic,
        each.partition,
        each.first_offset,
        each.producer_id,
        each.epoch,
        each.coordinator_epoch,
        each.last_write_ms,
    )
