"""The requests to the transaction coordinator, and its answers, as values."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.protocol.errors import ErrorCode
from ottla.shards.step import ProducerEpoch
from ottla.transactions.stored import NO_EPOCH, NO_PRODUCER_ID, TopicPartition, TransactionValue

NO_PRODUCER: Final = ProducerEpoch(NO_PRODUCER_ID, NO_EPOCH)
EPOCH_BUMP_VERSION: Final = 2
"""The first transaction.version whose transactions each have an epoch of their own (KIP-890)."""


class InitRequest(NamedTuple):
    """InitProducerId of a transactional producer."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerEpoch | None
    """What the producer has, if it goes on after an error (KIP-360)."""
    cluster_version: int
    """The cluster's transaction.version: an open transaction is aborted by its rules."""


class ProducerResult(NamedTuple):
    """The answer to InitProducerId and EndTxn: an error, or the producer from now on."""

    error: ErrorCode
    producer: ProducerEpoch = NO_PRODUCER


class AddRequest(NamedTuple):
    """AddPartitionsToTxn and AddOffsetsToTxn: partitions that the transaction is about to write."""

    transactional_id: str
    producer: ProducerEpoch
    partitions: frozenset[TopicPartition]
    client_version: int
    """2 if the partition's leader asks for a client of transaction.version 2, else 0."""


class EndRequest(NamedTuple):
    """EndTxn."""

    transactional_id: str
    producer: ProducerEpoch
    is_commit: bool
    client_version: int
    """2 from EndTxn 5 on, else 0."""


class DescribedTransaction(NamedTuple):
    """One transactional id; `value` None: it is unknown here."""

    transactional_id: str
    value: TransactionValue | None


class ListFilter(NamedTuple):
    """Which transactional ids ListTransactions asks for; empty sets allow any."""

    producer_ids: frozenset[int] = frozenset()
    states: frozenset[str] = frozenset()
    duration_ms: int = -1
    """Only transactions that are open for longer than this (KIP-994); below 0: any."""
