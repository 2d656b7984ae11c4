"""What administrators ask: which transactional ids there are, and the state of one (KIP-664)."""

from __future__ import annotations

from ottla.transactions.requests import ListFilter
from ottla.transactions.stored import TransactionValue


def matches(value: TransactionValue, wanted: ListFilter, now_ms: int) -> bool:
    """Whether ListTransactions returns this one.

    As in Kafka, the duration counts from the start of the last transaction, whether it is open or
    not; an id without one has "started" at -1 and matches any duration.
    """
    return (
        (not wanted.producer_ids or value.producer_id in wanted.producer_ids)
        and (not wanted.states or value.state.value in wanted.states)
        and (wanted.duration_ms < 0 or now_ms - value.start_ms > wanted.duration_ms)
    )
