"""The settings of the transaction coordinator, under Kafka's names with units last."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Kafka's defaults. The last ones are limits that Kafka does not have: transactional ids and
    their partitions are held in memory, and clients decide how many there are.
    """

    max_timeout_ms: int = 900_000
    """transaction.max.timeout.ms"""
    id_expiration_ms: int = 7 * 24 * 60 * 60_000
    """transactional.id.expiration.ms"""
    abort_interval_ms: int = 10_000
    """transaction.abort.timed.out.transaction.cleanup.interval.ms"""
    remove_expired_interval_ms: int = 3_600_000
    """transaction.remove.expired.transaction.cleanup.interval.ms"""
    append_timeout_ms: int = 30_000
    """How long a reply waits for the replicas; Kafka waits as long as the transaction's timeout"""
    max_ids: int = 100_000
    """Transactional ids of one partition of the state topic."""
    max_partitions: int = 10_000
    """Of one transaction: each change of it stores all of them."""
