"""The description of a transaction, and which of them hang."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.cli.failures import unknown
from ottla.cli.screen import say, show_table
from ottla.client.admin.hanging_transactions import PREPARED
from ottla.client.admin.transaction_states import TransactionDescription
from ottla.client.admin.transactions import DescribedTransaction, Transactions
from ottla.journey.formatting import format_elapsed, format_moment

LIST_HINT: Final = "To list all: ottla transaction list"
TOPIC_HINT: Final = "To list all topics: ottla topic list"


def show_transaction(described: TransactionDescription) -> None:
    say(f"{described.transactional_id}: {described.state}")
    say(f"coordinator: broker {described.coordinator}")
    say(f"producer: {described.producer_id}, epoch {described.producer_epoch}")
    say(f"timeout: {format_elapsed(described.timeout_ms)}")
    if described.open_for_ms is not None and described.started_ms is not None:
        since = format_moment(described.started_ms)
        say(f"open for: {format_elapsed(described.open_for_ms)}, since {since}")
    hint = what_next(described)
    if hint is not None:
        say(hint)
    if described.partitions:
        show_table(
            ["topic", "partition", "first offset", "last write", "state"],
            [
                [
                    each.topic,
                    each.partition,
                    each.first_offset,
                    moment(each.last_write_ms),
                    each.error or "",
                ]
                for each in described.partitions
            ],
            drop_empty=["state"],
        )


def existing(transactions: Transactions, names: Iterable[str]) -> dict[str, DescribedTransaction]:
    """Descriptions by id. Raises Failed that names the first missing id."""
    wanted = list(names)
    found = transactions.described(wanted)
    for name in wanted:
        if name not in found:
            known = [each.transactional_id for each in transactions.listed()]
            raise unknown("transactional id", name, known, LIST_HINT)
    return found


def what_next(described: TransactionDescription) -> str | None:
    """What ends an open transaction, and how to end it now."""
    if described.state in PREPARED:
        return (
            "The outcome is decided. The coordinator writes the markers to the partitions below "
            "until each leader has acknowledged its own. To check the leaders: ottla cluster "
            "describe"
        )
    if described.open_for_ms is None:
        return None
    left_ms = described.timeout_ms - described.open_for_ms
    if left_ms > 0:
        left = format_elapsed(left_ms)
        ends = f"The coordinator aborts it in {left} if the producer does not end it."
    else:
        ends = (
            "Its timeout is over. The coordinator aborts it with its next scan "
            "(transaction.abort.timed.out.transaction.cleanup.interval.ms, 10 s by default)."
        )
    return f"{ends} To abort it now: ottla transaction abort {described.transactional_id}"


def moment(at_ms: int | None) -> str | None:
    return None if at_ms is None or at_ms < 0 else format_moment(at_ms)
