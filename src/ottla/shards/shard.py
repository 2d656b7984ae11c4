"""What the runtime asks of a coordinator shard: a state machine over one partition's records.

Kafka's counterparts are CoordinatorShard and CoordinatorPlayback. Decisions about requests are each
kind's own methods; they take a Step last.
"""

from __future__ import annotations

from typing import Any, Protocol

from ottla.shards.step import ProducerEpoch, Step, TransactionMarker


class Shard(Protocol):
    """The state of one partition; changed by `apply` and `apply_marker`, in the log's order, while
    the partition is loaded and ever after.

    What a kind keeps beside that, never in the log (requests that wait, members that have joined
    again), is its own matter: it is lost when the partition moves.
    """

    def apply(
        self, record: Any, offset: int, timestamp_ms: int, producer: ProducerEpoch | None
    ) -> None:
        """Takes over one record of the log; `producer`: it belongs to this one's transaction."""

    def apply_marker(self, marker: TransactionMarker, offset: int) -> None:
        """Ends a producer's transaction: its records now count, or never will."""

    def loaded(self, step: Step[Any, Any, Any]) -> None:
        """Every record of the log is applied; requests come from now on."""

    def expired(self, event: Any, step: Step[Any, Any, Any]) -> None:
        """A timer has expired."""

    def unloaded(self, step: Step[Any, Any, Any]) -> None:
        """Another broker leads the partition: requests that wait are to be answered so. The step's
        records and timers are ignored."""
