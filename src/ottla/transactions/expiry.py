"""What time does to transactions: open ones are aborted, ids that nobody uses are removed.

A prepared transaction has no timeout: its outcome stands, and its markers are written, however long
that takes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.transactions.abort import abort_on_server
from ottla.transactions.complete import markers_due
from ottla.transactions.state import AT_REST, ONGOING, PREPARED
from ottla.transactions.step import ProducerIdNeeded, Step
from ottla.transactions.stored import NO_PRODUCER_ID, TransactionRecord, TransactionValue


def is_timed_out(value: TransactionValue, now_ms: int) -> bool:
    """Open for longer than its producer asked for."""
    return value.state is ONGOING and value.start_ms + value.timeout_ms < now_ms


def abort_timed_out(
    transactions: Mapping[str, TransactionValue],
    cluster_version: int,
    new_producer_ids: list[int],
    step: Step,
) -> int:
    """Aborts what has timed out, and asks again for all markers that are due.

    Those markers were asked for when their transaction was prepared. But a driver gives up where a
    broker says so, and the wait for the replicas may have ended too early. Returns how many more
    producer ids are needed; `new_producer_ids` is used up from its end.
    """
    step.is_atomic = False
    needed = 0
    for transactional_id, value in transactions.items():
        if value.state in PREPARED:
            step.committed.append(markers_due(transactional_id, value))
        elif is_timed_out(value, step.now_ms):
            spare = new_producer_ids[-1] if new_producer_ids else None
            try:
                abort_on_server(transactional_id, value, cluster_version, spare, step)
            except ProducerIdNeeded:
                needed += 1
                continue
            aborted = step.records[-1].value
            assert aborted is not None
            if aborted.next_producer_id != NO_PRODUCER_ID:
                new_producer_ids.pop()
    return needed


def remove_expired(transactions: Mapping[str, TransactionValue], step: Step) -> None:
    """Removes the ids whose last change is `transactional.id.expiration.ms` ago."""
    step.is_atomic = False
    before_ms = step.now_ms - step.settings.id_expiration_ms
    for transactional_id, value in transactions.items():
        if value.state in AT_REST and value.last_update_ms <= before_ms:
            step.records.append(TransactionRecord(transactional_id, None))
