"""Before its first append to a partition, a transaction is verified with its coordinator (KIP-890,
part 1): otherwise a late batch of an ended transaction would begin one that nobody ends.

The coordinator's answer may arrive after the transaction has ended and another one has begun. So
each verification has a guard, an object that equals only itself. The partition forgets the guard
with the first append of the transaction and with its marker; an append with a forgotten guard is
refused. Modelled on Kafka's VerificationStateEntry and VerificationGuard. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.header import BatchHeader

MAX_VERIFICATIONS: Final = 10_000
"""At a time, of one partition. The oldest gives way: its append is refused, and sent again."""


class Guard:
    """One verification's identity."""

    __slots__ = ()


NOT_REQUIRED: Final = Guard()
"""Appends whatever the state is (transaction.partition.verification.enable=false)."""


@dataclass(slots=True)
class Verification:
    """The verification of one producer's next transaction.

    `lowest_sequence` is the lowest one that was seen. If its batch is refused for now, later
    batches must not come first: they would make it out of order for ever.
    """

    began_ms: int
    producer_epoch: int
    lowest_sequence: int
    is_version_2: bool
    """The producer takes part in transactions of version 2 (KIP-890, part 2)."""
    guard: Guard = field(default_factory=Guard)

    def seen(self, producer_epoch: int, sequence: int) -> None:
        """Another batch waits for the same verification."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


_NONE: Final[dict[int, Verification]] = {}
"""Of every partition that has no verification, which are most: a dict takes 80 B. Never changed."""


class Verifications:
    """The verifications of one partition, by producer id."""

    __slots__ = ("by_producer",)

    def __init__(self) -> None:
        self.by_producer = _NONE

    def begin(
        self, producer_id: int, producer_epoch: int, sequence: int, *, version_2: bool, now_ms: int
    ) -> Guard:
        """Begin the producer's verification, or join the one that has begun."""
        found = self.by_producer.get(producer_id)
        if found is not None:
            found.seen(producer_epoch, sequence)
            return found.guard
        if len(self.by_producer) >= MAX_VERIFICATIONS:
            del self.by_producer[next(iter(self.by_producer))]
        new = Verification(now_ms, producer_epoch, sequence, version_2)
        if not self.by_producer:
            self.by_producer = {}
        self.by_producer[producer_id] = new
        return new.guard

    def check_guard(self, producer_id: int, guard: Guard | None) -> None:
        """Raise ApiError INVALID_TXN_STATE if the guard is not that of this producer now."""
        found = self.by_producer.get(producer_id)
        if guard is NOT_REQUIRED or (found is not None and found.guard is guard):
            return
        raise ApiError(
            ErrorCode.invalid_txn_state,
            f"the batch of producer {producer_id} is not part of an ongoing transaction",
        )

    def check_sequence(self, header: BatchHeader) -> None:
        """Raise ApiError OUT_OF_ORDER_SEQUENCE_NUMBER if an earlier batch is still to come. The
        partition knows no batch of the producer; otherwise that batch says what comes next.

        Kafka checks here in both cases. But then a late copy of an old batch, whose transaction
        has ended, leaves its sequence as the lowest, and every later batch is out of order.
        """
        found = self.by_producer.get(header.producer_id)
        if found is None:
            return
        # In version 2 each transaction has an epoch of its own, which begins at 0.
        highest = 0 if found.is_version_2 else found.lowest_sequence
        if header.base_sequence > highest:
            raise ApiError(
                ErrorCode.out_of_order_sequence_number,
                f"producer {header.producer_id} sent sequence {header.base_sequence};"
                f" {highest} comes first",
            )

    def appended(self, producer_id: int) -> None:
        """A batch of the transaction is in the log: it is ongoing."""
        self.by_producer.pop(producer_id, None)

    def ended(self, producer_id: int, marker_epoch: int) -> None:
        """A marker is in the log. In version 2 it has the next transaction's epoch, so that
        transaction's verification may have begun before the marker came, and stays.
        """
        found = self.by_producer.get(producer_id)
        if found is None or (found.is_version_2 and found.producer_epoch == marker_epoch):
            return
        del self.by_producer[producer_id]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget those that were never followed by an append."""
        if not self.by_producer:
            return
        self.by_producer = {
            producer_id: each
            for producer_id, each in self.by_producer.items()
            if now_ms - each.began_ms < expiration_ms
        }
