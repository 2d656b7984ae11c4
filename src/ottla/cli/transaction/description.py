"""The description of a transaction, and which of them hang."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ottla.cli.failures import unknown
from ottla.cli.rows import column, only_json, row, show_rows
from ottla.cli.screen import say
from ottla.client.admin.transactions import DescribedTransaction, OpenProducer, Transactions
from ottla.client.topic_partition import TopicPartition
from ottla.journey.formatting import elapsed_said, moment_said

ONGOING: Final = "Ongoing"
PREPARED: Final = ("PrepareCommit", "PrepareAbort")
OPEN: Final = (ONGOING, *PREPARED)
LIST_HINT: Final = "To list all: ottla transaction list"
TOPIC_HINT: Final = "To list all topics: ottla topic list"


@row
class PartitionOfTransaction:
    """What a partition of a transaction says; `error` is why it says nothing."""

    topic: str
    partition: int
    first_offset: int | None
    last_write_ms: int | None = column("last write", lambda each: moment(each.last_write_ms))
    error: str | None = column("state", lambda each: each.error or "", is_optional=True)


@row
class TransactionDescription:
    """One transactional id: its coordinator's description, and what its partitions say of it."""

    transactional_id: str
    state: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    open_for_ms: int | None
    partitions: list[PartitionOfTransaction]

    def show(self) -> None:
        say(f"{self.transactional_id}: {self.state}")
        say(f"coordinator: broker {self.coordinator}")
        say(f"producer: {self.producer_id}, epoch {self.producer_epoch}")
        say(f"timeout: {elapsed_said(self.timeout_ms)}")
        if self.open_for_ms is not None and self.started_ms is not None:
            say(f"open for: {elapsed_said(self.open_for_ms)}, since {moment_said(self.started_ms)}")
        hint = what_next(self)
        if hint is not None:
            say(hint)
        if self.partitions:
            show_rows(self.partitions)


@row
class HangingTransaction:
    """An open transaction that no coordinator will end, in one partition."""

    topic: str
    partition: int
    first_offset: int
    producer_id: int = column("producer")
    producer_epoch: int = column("epoch")
    coordinator_epoch: int = only_json()
    last_write_ms: int = column("last write", lambda each: moment(each.last_write_ms))


def existing(transactions: Transactions, names: Iterable[str]) -> dict[str, DescribedTransaction]:
    """Descriptions by id. Raises Failed that names the first missing id."""
    wanted = list(names)
    found = transactions.described(wanted)
    for name in wanted:
        if name not in found:
            known = [each.transactional_id for each in transactions.listed()]
            raise unknown("transactional id", name, known, LIST_HINT)
    return found


def transaction_description(
    described: DescribedTransaction,
    producers: Iterable[OpenProducer],
    why: Mapping[TopicPartition, str],
    now_ms: int,
) -> TransactionDescription:
    """`producers` and `why` are those of `Transactions.open_producers`."""
    is_open = described.state in OPEN
    in_log = {each.place: each for each in producers if each.producer_id == described.producer_id}
    partitions = []
    for place in described.partitions:
        each = in_log.get(place)
        partitions.append(
            PartitionOfTransaction(
                *place,
                each.first_offset if each else None,
                each.last_write_ms if each else None,
                why.get(place),
            )
        )
    return TransactionDescription(
        described.transactional_id,
        described.state,
        described.coordinator,
        described.producer_id,
        described.producer_epoch,
        described.timeout_ms,
        described.started_ms if is_open else None,
        max(0, now_ms - described.started_ms) if is_open else None,
        partitions,
    )


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
        ends = (
            f"The coordinator aborts it in {elapsed_said(left_ms)} if the producer does not end it."
        )
    else:
        ends = (
            "Its timeout is over. The coordinator aborts it with its next scan "
            "(transaction.abort.timed.out.transaction.cleanup.interval.ms, 10 s by default)."
        )
    return f"{ends} To abort it now: ottla transaction abort {described.transactional_id}"


def which_hang(
    producers: Iterable[OpenProducer],
    transactional_ids: Mapping[int, str],
    described: Mapping[str, DescribedTransaction],
) -> list[OpenProducer]:
    """Those whose transaction no coordinator will end (KIP-664).

    The open transaction of a producer in a partition hangs if the producer's transactional id is
    unknown (`transactional_ids`, by producer id), or if that id's transaction lacks the partition.
    """
    return [
        each
        for each in producers
        if not has_partition(described.get(transactional_ids.get(each.producer_id, "")), each)
    ]


def has_partition(described: DescribedTransaction | None, each: OpenProducer) -> bool:
    """Whether the coordinator will write a marker to this partition."""
    return described is not None and described.state in OPEN and each.place in described.partitions


def hanging_transaction(each: OpenProducer) -> HangingTransaction:
    return HangingTransaction(
        each.topic,
        each.partition,
        each.first_offset,
        each.producer_id,
        each.epoch,
        each.coordinator_epoch,
        each.last_write_ms,
    )


def moment(at_ms: int | None) -> str | None:
    return None if at_ms is None or at_ms < 0 else moment_said(at_ms)
