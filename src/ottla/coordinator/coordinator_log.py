"""What a coordinator needs of its partition's log: append, read from the start, wait for commits.

`partition_log` is this over a partition that the broker leads; tests keep one in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from ottla.shards.step import ProducerEpoch, TransactionMarker

KeyAndValue: TypeAlias = tuple[bytes, bytes | None]


class LogRecord(NamedTuple):
    """One record of a coordinator's partition."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    producer: ProducerEpoch | None = None
    """The record belongs to this one's transaction."""


class LogMarker(NamedTuple):
    """The end of a transaction in a coordinator's partition."""

    offset: int
    marker: TransactionMarker


class Verification(NamedTuple):
    """What an append needs to belong to its producer's transaction."""

    guard: object
    is_needed: bool
    """False: the partition has records of the transaction already."""


class CoordinatorLog(Protocol):
    """A coordinator's partition, for one leadership of this broker."""

    @property
    def leader_epoch(self) -> int:
        """The epoch of this leadership: the coordinator epoch in what it writes elsewhere."""

    @property
    def high_watermark(self) -> int:
        """All records before this offset are committed."""

    @property
    def max_batch_bytes(self) -> int:
        """A larger batch is refused."""

    def check(self) -> None:
        """Raises ApiError, as `append`, if it would be refused now whatever it is."""

    def begin_verification(self, producer: ProducerEpoch, *, version_2: bool) -> Verification:
        """Before the first records of a transaction, its coordinator is asked (KIP-890).

        `version_2`: the producer's transactions each have an epoch of their own. Raises ApiError.
        """

    def append(
        self,
        records: Sequence[KeyAndValue],
        now_ms: int,
        producer: ProducerEpoch | None,
        guard: object | None = None,
    ) -> int:
        """Appends one batch and returns its last offset; raises ApiError if it is refused.

        `guard` is that of the transaction's verification; None if it was not verified.
        """

    def append_marker(self, marker: TransactionMarker, now_ms: int) -> int:
        """Appends a control batch and returns its offset; raises ApiError if it is refused."""

    def read_all(self) -> Iterator[LogRecord | LogMarker]:
        """Everything in the log, oldest first, also what is not committed yet."""

    async def committed(self, offset: int) -> bool:
        """Waits until this offset is committed; False if another broker leads before that.

        Raises ApiError where too few replicas are in sync; the caller limits the time.
        """
