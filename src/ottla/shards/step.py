"""One step of a coordinator shard: the time it happens, and what is to be done afterwards.

A shard is called with an event (a request, a timer) and a Step. It decides from its state, and
writes into the Step what must happen. The runtime (`ottla.coordinator`) then does this, in this
order:

    records, marker  appended to the shard's partition, then applied. Applying is the only way
                     that what the log holds changes in memory
    timers           set and cancelled
    when_appended    called with a new step
    replies          sent once everything appended so far is committed
    committed        handed to the shard kind's `on_committed`, at the same time

If the append is refused, nothing of the step is done: `when_refused` is called with a new step and
the error. So a decision that writes records changes nothing before they are applied, and leaves to
`when_appended` what follows from them.

Steps may share an append (`ottla.coordinator.shared_append`). Such a step is applied before it and
does all else of this list but to reply; if the append is refused, the shard is given up, and
another one loads the log.

Kafka's counterparts are CoordinatorResult and CoordinatorTimer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar

from ottla.protocol.errors import ErrorCode

RecordT = TypeVar("RecordT")
EventT = TypeVar("EventT")
EventT_co = TypeVar("EventT_co", covariant=True)
SettingsT = TypeVar("SettingsT")


class ProducerEpoch(NamedTuple):
    """The transactional producer that records belong to."""

    producer_id: int
    epoch: int


class TransactionMarker(NamedTuple):
    """The control record that ends a producer's transaction in this partition."""

    producer: ProducerEpoch
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int = 0
    """That of the producer's client, which says what epochs are valid; not stored (KIP-890)."""


class SetTimer(NamedTuple, Generic[EventT_co]):
    """Sets the timer of this key, or moves it; the shard gets `event` when it has expired."""

    key: Hashable
    delay_ms: int
    event: EventT_co


class CancelTimer(NamedTuple):
    key: Hashable


class Reply(NamedTuple):
    """The answer to a request that waited; the runtime knows whose `token` it is."""

    token: Any
    result: Any


class Step(Generic[RecordT, EventT, SettingsT]):
    """Collects what one event leads to; the top of this file has the order."""

    __slots__ = (
        "committed", "encoded", "guard", "is_atomic", "marker", "now_ms", "producer", "records",
        "replies", "settings", "timers", "when_appended", "when_refused",
    )  # fmt: skip

    def __init__(self, now_ms: int, settings: SettingsT) -> None:
        self.now_ms = now_ms
        self.settings = settings
        self.records: list[RecordT] = []
        self.encoded: list[tuple[bytes, bytes | None]] | None = None
        """Key and value of each record, if they were encoded before the decision."""
        self.producer: ProducerEpoch | None = None
        """Whose open transaction the records belong to; None for records of no transaction."""
        self.guard: object | None = None
        """From the verification of that transaction; None if transactions are not verified."""
        self.is_atomic = True
        """False: the records may go into several batches, of which the last may be refused."""
        self.marker: TransactionMarker | None = None
        """A step has either records or a marker."""
        self.timers: list[SetTimer[EventT] | CancelTimer] = []
        self.replies: list[Reply] = []
        self.committed: list[Any] = []
        """Work for when everything appended so far is committed, as data; dropped if this broker
        loses the partition before that. Other callbacks of the event loop run between two entries.
        """
        self.when_appended: Callable[[Step[RecordT, EventT, SettingsT]], None] | None = None
        self.when_refused: Callable[[Step[RecordT, EventT, SettingsT], ErrorCode], None] | None = (
            None
        )

    def reply(self, token: Any, result: Any) -> None:
        self.replies.append(Reply(token, result))

    def set_timer(self, key: Hashable, delay_ms: int, event: EventT) -> None:
        self.timers.append(SetTimer(key, delay_ms, event))

    def cancel_timer(self, key: Hashable) -> None:
        self.timers.append(CancelTimer(key))
