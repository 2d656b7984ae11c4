"""Transactions: what the coordinator of each says, and what its partitions say of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.client.admin.hanging_transactions import OPEN
from ottla.client.admin.transactions import DescribedTransaction, OpenProducer
from ottla.client.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionOfTransaction:
    """What a partition of a transaction says; `error` is why it says nothing."""

    topic: str
    partition: int
    first_offset: int | None
    last_write_ms: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """One transactional id: its coordinator's description, and what its partitions say of it."""

    transactional_id: str
    state: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    open_for_ms: int | None
    partitions: list[PartitionOfTransaction]


def transaction_description(
    described: DescribedTransaction,
    producers: Iterable[OpenProducer],
    why: Mapping[TopicPartition, str],
    now_ms: int,
) -> TransactionDescription:
    """`producers` and `why` are those of `Transactions.open_producers`."""
    is_open = described.state in OPEN
    in_log = {
        each.topic_partition: each
        for each in producers
        if each.producer_id == described.producer_id
    }
    partitions = []
    for topic_partition in described.partitions:
        each = in_log.get(topic_partition)
        partitions.append(
            PartitionOfTransaction(
                *topic_partition,
                each.first_offset if each else None,
                each.last_write_ms if each else None,
                why.get(topic_partition),
            )
        )
    return TransactionDescription(
        described.transactional_id,
        described.state,
        described.coordinator,
        described.producer_id,
        described.producer_epoch,
        described.timeout_ms,
        described.started_ms if is_open else None,
        max(0, now_ms - described.started_ms) if is_open else None,
        partitions,
    )
