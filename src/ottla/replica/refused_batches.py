"""Idempotent batches that one partition refused and that their producers send again. Pure.

A producer has up to five batches in flight. If its client heard of an election before this broker
did, the first batches are refused with NOT_LEADER_OR_FOLLOWER and a later one arrives after the
broker has become the leader. It is out of order, but only because of the refusal. On
OUT_OF_ORDER_SEQUENCE_NUMBER, librdkafka begins a new epoch, in which it sends all of them again,
even one that the former leader had already replicated: that record is then in the log twice. So the
later batch is refused with the error of the earlier one, and the client sends them again in order.
Apache Kafka answers OUT_OF_ORDER_SEQUENCE_NUMBER.

A partition that does not know the producer accepts any first sequence, so there the later batch
would come first, and the earlier one would be out of order for ever (KAFKA-14359, as in Apache
Kafka). It is refused in the same way.

NOT_ENOUGH_REPLICAS has the same effect when a follower joins the ISR in between, and
UNKNOWN_TOPIC_OR_PARTITION when the broker has just learned of a new partition (`early_batches`).
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
    """The latest refused batch of each producer, and its lowest one."""

    __slots__ = ("_latest", "_lowest", "_max_producers")

    def __init__(self, max_producers: int = MAX_PRODUCERS) -> None:
        self._max_producers = max_producers
        self._latest: dict[int, _Refused] = {}
        """By producer, in the order of their times."""
        self._lowest: dict[int, _Refused] = {}
        """Of the same producers: the lowest sequence in flight."""

    def add(
        self, producer_id: int, producer_epoch: int, sequence: int, code: ErrorCode, now_ms: int
    ) -> None:
        """A batch with this base sequence was refused; `now_ms` is on the monotonic clock."""
        latest = self._latest
        latest.pop(producer_id, None)
        while latest:
            oldest_id, oldest = next(iter(latest.items()))
            if len(latest) < self._max_producers and now_ms < oldest.at_ms + IN_FLIGHT_MS:
                break
            del latest[oldest_id]
            self._lowest.pop(oldest_id, None)
        latest[producer_id] = new = _Refused(producer_epoch, sequence, code, now_ms)
        if _follows(self._lowest.get(producer_id), producer_epoch, sequence, now_ms) is None:
            self._lowest[producer_id] = new

    def cause(
        self, producer_id: int, producer_epoch: int, sequence: int, now_ms: int
    ) -> ErrorCode | None:
        """The error of the refused batch that a batch out of order may have followed; None if there
        is none.
        """
        return _follows(self._latest.get(producer_id), producer_epoch, sequence, now_ms)

    def comes_first(
        self, producer_id: int, producer_epoch: int, sequence: int, now_ms: int
    ) -> ErrorCode | None:
        """The error of the refused batch that must come before this one, if the partition knows no
        batch of this producer; None if there is none.
        """
        return _follows(self._lowest.get(producer_id), producer_epoch, sequence, now_ms)


def _follows(
    refused: _Refused | None, producer_epoch: int, sequence: int, now_ms: int
) -> ErrorCode | None:
    if (
        refused is None
        or refused.producer_epoch != producer_epoch
        or now_ms >= refused.at_ms + IN_FLIGHT_MS
    ):
        return None
    ahead = (sequence - refused.sequence) & LARGEST_SEQUENCE
    return refused.code if 0 < ahead <= LARGEST_SEQUENCE // 2 else None
