"""What a coordinator keeps in `__transaction_state`, as values.

One record is the whole state of one transactional id, and no value (a tombstone) removes the id:
so the newest record of a key is enough, and the topic is compacted. `record_format` has the bytes.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ottla.shards.step import ProducerEpoch
from ottla.transactions.state import PREVIOUS_STATES, TransactionState

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
MAX_EPOCH: Final = 2**15 - 1


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class TransactionValue(NamedTuple):
    """A transactional id, its producer, and its transaction."""

    producer_id: int
    epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    """Those of the transaction; while markers are written, those that have none yet."""
    last_update_ms: int
    start_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change."""
    next_producer_id: int = NO_PRODUCER_ID
    """What takes over at epoch 0 when the transaction completes: the epochs are used up."""
    client_version: int = 0
    """transaction.version of the client of this transaction: 2, or 0 for all below."""
    last_epoch: int = NO_EPOCH
    """The producer's epoch before its last bump. In memory only, as in Kafka: -1 once another
    broker coordinates, so a retry over a failover is fenced."""

    @property
    def producer(self) -> ProducerEpoch:
        return ProducerEpoch(self.producer_id, self.epoch)

    @property
    def is_exhausted(self) -> bool:
        """The epoch is the last that a client gets; 32767 is left for one more fence."""
        return is_exhausted(self.epoch)

    def moved(self, state: TransactionState, now_ms: int, **changes: Any) -> TransactionValue:
        """The value after a transition, which must be one that the states allow."""
        assert self.state in PREVIOUS_STATES[state], f"{self.state} to {state}"
        value = self._replace(
            state=state,
            last_update_ms=now_ms,
            previous_producer_id=self.producer_id,
            **changes,
        )
        assert value.producer_id >= 0, "a transaction has a producer id"
        assert 0 <= value.epoch <= MAX_EPOCH, f"epoch {value.epoch}"
        return value


class TransactionRecord(NamedTuple):
    """One record to append; `value` None is a tombstone."""

    transactional_id: str
    value: TransactionValue | None


def is_exhausted(epoch: int) -> bool:
    """Whether a producer id has no epoch left after this one (KIP-360)."""
    return epoch >= MAX_EPOCH - 1
