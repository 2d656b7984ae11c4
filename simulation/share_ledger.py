"""What the members of a share group saw of its records, held against what KIP-932 promises. Pure.

    once accepted or rejected    and told so, a record is never delivered again
    one member at a time         has a record, until it gives it back or its lock is over
    so many deliveries           a record has at most
    none is lost                 each is accepted, rejected, or was delivered so often

A leader that was replaced and does not know it yet may hand out any record (as Kafka's: that a
record was acquired is not written). So a delivery counts only if one broker led the partition from
the request to its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.share.record_state import AckType


class Delivery(NamedTuple):
    """One record in the answer to a member."""

    member: int
    session: int
    """Of the member at the broker; each has its own number."""
    broker: int
    partition: int
    offset: int
    delivery_count: int
    sent_ms: int
    received_ms: int


class Ack(NamedTuple):
    """What a member is about to say of a record that it has."""

    delivery: Delivery
    type: AckType
    sent_ms: int


@dataclass(slots=True)
class Record:
    """What is known of one record."""

    deliveries: list[Delivery] = field(default_factory=list)
    """Those that count."""
    over_ms: int | None = None
    """A member was told that it is accepted or rejected."""
    over_as: AckType | None = None
    unknown: int = 0
    """How often a member said so, and did not learn whether that holds."""
    said_ms: dict[int, int] = field(default_factory=dict)
    """By member: when it said something of the record last."""
    most_acquired: int = 0
    """The highest count with which a broker handed it out, even if the answer was lost."""


class ShareLedger:
    """Of one group on one topic. What is wrong goes to `found`, once."""

    def __init__(
        self,
        limit: int,
        lock_ms: int,
        has_led: Callable[[int, int, int, int], bool],
        found: Callable[[int, str], None],
    ) -> None:
        """`has_led(partition, broker, from ms, to ms)`: whether this broker alone led throughout;
        `found(partition, text)`."""
        self.limit = limit
        self._lock_ms = lock_ms
        self._has_led = has_led
        self._found = found
        self.records: dict[tuple[int, int], Record] = {}
        """By partition and offset."""
        self._doubts: dict[int, list[tuple[int, int, str]]] = {}
        """By session: if it goes on with a request sent after this time, a partition's record was
        had by two."""
        self.accepted = 0

    def record(self, partition: int, offset: int) -> Record:
        known = self.records.get((partition, offset))
        if known is None:
            known = self.records[partition, offset] = Record()
        return known

    # What happens.

    def acquired(self, partition: int, offsets: Iterable[int], count: int) -> None:
        """A broker hands out records, whether or not the answer arrives."""
        for offset in offsets:
            record = self.record(partition, offset)
            record.most_acquired = max(record.most_acquired, count)

    def delivered(self, new: Delivery) -> None:
        """A member got a record."""
        record = self.record(new.partition, new.offset)
        where = f"offset {new.offset}"
        if not 1 <= new.delivery_count <= self.limit:
            self._found(new.partition, f"{where} was delivered with the count {new.delivery_count}")
        if not self._has_led(new.partition, new.broker, new.sent_ms, new.received_ms):
            return
        if record.over_ms is not None and new.sent_ms > record.over_ms:
            assert record.over_as is not None
            self._found(
                new.partition,
                f"{where} was {record.over_as.name} at {record.over_ms} ms and delivered to member "
                f"{new.member} again at {new.received_ms} ms",
            )
        for old in record.deliveries:
            if self._overlaps(old, new, record):
                text = (
                    f"{where} was delivered to member {new.member} at {new.received_ms} ms, while "
                    f"member {old.member} had it since {old.received_ms} ms"
                )
                doubts = self._doubts.setdefault(old.session, [])
                doubts.append((new.received_ms, new.partition, text))
        record.deliveries.append(new)

    def _overlaps(self, old: Delivery, new: Delivery, record: Record) -> bool:
        """The lock of the old delivery cannot have been over, and it was not given back."""
        return (
            old.session != new.session
            and old.broker == new.broker
            and new.sent_ms > old.received_ms
            and new.received_ms < old.sent_ms + self._lock_ms
            and record.said_ms.get(old.member, -1) < old.sent_ms
            and self._has_led(new.partition, new.broker, old.sent_ms, new.received_ms)
        )

    def says(self, ack: Ack) -> None:
        """A member is about to say what became of a record."""
        record = self.record(ack.delivery.partition, ack.delivery.offset)
        record.said_ms[ack.delivery.member] = ack.sent_ms
        if ack.type in (AckType.ACCEPT, AckType.REJECT):
            record.unknown += 1

    def took(self, ack: Ack, now_ms: int) -> None:
        """It was told that what it said holds."""
        mine = ack.delivery
        record = self.record(mine.partition, mine.offset)
        is_end = ack.type in (AckType.ACCEPT, AckType.REJECT)
        # What is said of a record that is over changes nothing, and is taken.
        may_be_over = (
            record.over_ms is not None
            or record.unknown > is_end
            or record.most_acquired >= self.limit
        )
        for other in () if may_be_over else record.deliveries:
            if (
                other.session != mine.session
                and other.sent_ms > mine.received_ms
                and other.received_ms < ack.sent_ms
            ):
                self._found(
                    mine.partition,
                    f"offset {mine.offset}: {ack.type.name} of member {mine.member} at "
                    f"{ack.sent_ms} ms was taken, although member {other.member} got the record "
                    f"at {other.received_ms} ms",
                )
        if is_end:
            record.unknown -= 1
            self.accepted += ack.type is AckType.ACCEPT
            if record.over_ms is None:
                record.over_ms, record.over_as = now_ms, ack.type

    def refused(self, ack: Ack) -> None:
        """It was told that what it said does not hold."""
        if ack.type in (AckType.ACCEPT, AckType.REJECT):
            self.record(ack.delivery.partition, ack.delivery.offset).unknown -= 1

    # Sessions.

    def session_went_on(self, session: int, sent_ms: int) -> None:
        """A request of the session, sent at this time, was answered: it had not ended before."""
        doubts = self._doubts.pop(session, [])
        left = []
        for doubt in doubts:
            since_ms, partition, text = doubt
            if since_ms < sent_ms:
                self._found(partition, text)
            else:
                left.append(doubt)
        if left:
            self._doubts[session] = left

    def session_ended(self, session: int) -> None:
        """It may have ended at any time since its last answer."""
        self._doubts.pop(session, None)

    # The end.

    def lost(self, partition: int, end_offset: int) -> list[int]:
        """Offsets before this one that are over for no reason that there may be."""
        return [
            offset
            for offset in range(end_offset)
            if not self._is_over(self.record(partition, offset))
        ]

    def _is_over(self, record: Record) -> bool:
        return (
            record.over_ms is not None or record.unknown > 0 or record.most_acquired >= self.limit
        )
