"""Idempotent batches that one partition refused and that their producers send again. Pure.

A producer has up to five batches in flight. If its client heard of an election before this broker
did, the first batches are refused with NOT_LEADER_OR_FOLLOWER and a later one arrives after the
broker has become the leader. It is out of order, but only because of the refusal. On
OUT_OF_ORDER_SEQUENCE_NUMBER, librdkafka begins a new epoch, in which it sends all of them again,
even one that the former leader had already replicated: that record is then in the log twice. So the
later batch is refused with the error of the earlier one, and the client sends them again in order.
Apache Kafka answers OUT_OF_ORDER_SEQUENCE_NUMBER.

NOT_ENOUGH_REPLICAS has the same effect when a follower joins the ISR in between.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.protocol.errors import ErrorCode
from ottla.records.header import LARGEST_SEQUENCE

IN_FLIGHT_MS: Final = 5_000
"""What a client sent before it had the refusal arrives within this time."""
MAX_PRODUCERS: Final = 1_000


class _Refused(NamedTuple):
    producer_epoch: int
    sequence: int
    code: ErrorCode
    at_ms: int


class RefusedBatches:
    """The latest refused batch of each producer."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, _Refused] = {}
        """In the order of their times."""

    def add(
        self, producer_id: int, producer_epoch: int, sequence: int, code: ErrorCode, now_ms: int
    ) -> None:
        """A batch with this base sequence was refused; `now_ms` is on the monotonic clock."""
        refused = self._by_producer
        refused.pop(producer_id, None)
        while refused:
            oldest_id, oldest = next(iter(refused.items()))
            if len(refused) < MAX_PRODUCERS and now_ms < oldest.at_ms + IN_FLIGHT_MS:
                break
            del refused[oldest_id]
        refused[producer_id] = _Refused(producer_epoch, sequence, code, now_ms)

    def cause(
        self, producer_id: int, producer_epoch: int, sequence: int, now_ms: int
    ) -> ErrorCode | None:
        """The error of the refused batch that a batch out of order may have followed; None if there
        is none.
        """
        refused = self._by_producer.get(producer_id)
        if (
            refused is None
            or refused.producer_epoch != producer_epoch
            or now_ms >= refused.at_ms + IN_FLIGHT_MS
        ):
            return None
        ahead = (sequence - refused.sequence) & LARGEST_SEQUENCE
        return refused.code if 0 < ahead <= LARGEST_SEQUENCE // 2 else None
