"""Finds what a partition says of the transaction of one record, the open ones and the marker; and
what the coordinators say of the open one that readers wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ottla.journey.transactions import EndMarker, OpenTransaction, TransactionFacts
from ottla.log.log import Log
from ottla.log.scan import scan_batches
from ottla.records.control import ControlType, read_end_marker
from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.header import BatchHeader
from ottla.replica.partition import Partition
from ottla.tracing.key_search import EVERYTHING, oldest_first, storage_refusals
from ottla.tracing.segment_search import BUDGET_BYTES, Window
from ottla.tracing.transaction_coordinators import Coordinated, FindTransactions
from ottla.transactions.stored import TopicPartition

NOT_SEARCHED: Final = 0
MAX_LOOKS: Final = 3
"""At the open transactions, while they change."""


async def transaction_facts(
    partition: Partition,
    header: BatchHeader | None,
    find: FindTransactions,
    budget_bytes: int = BUDGET_BYTES,
) -> TransactionFacts:
    """`header` is that of the record's batch, if it is stored.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    log = partition.log
    topic_partition = TopicPartition(partition.topic, partition.index)
    for _ in range(MAX_LOOKS):
        transactions = open_transactions(log)
        stable = log.last_stable_offset(partition.high_watermark)
        asked = waited_for(header, transactions, stable)
        if not asked:
            coordinated = Coordinated({}, ())
            break
        coordinated = await find(asked, topic_partition)
        known = {number for number, each in coordinated.transactions.items() if each.has_partition}
        # What its coordinator completed meanwhile looks as if it hung: look again.
        if asked <= known or open_transactions(log) == transactions:
            break
    marker, searched_to = None, NOT_SEARCHED
    is_open = header is not None and _is_open(header, transactions)
    if header is not None and header.is_transactional and not is_open:
        marker, searched_to, _ = await find_marker(log, header, budget_bytes)
    return TransactionFacts(
        stable,
        transactions,
        marker,
        searched_to,
        coordinated.transactions,
        coordinated.unanswered,
    )


def waited_for(
    header: BatchHeader | None, transactions: Sequence[OpenTransaction], stable: int
) -> frozenset[int]:
    """The producers whose coordinators are asked: the one that holds the last stable offset before
    the record, and the record's own if its transaction is open.
    """
    if header is None or header.last_offset < stable:
        return frozenset()
    holding = {each.producer_id for each in transactions if each.first_offset <= stable}
    own = {header.producer_id} if _is_open(header, transactions) else set()
    return frozenset(holding | own)


def _is_open(header: BatchHeader, transactions: Sequence[OpenTransaction]) -> bool:
    return header.is_transactional and any(
        each.producer_id == header.producer_id and each.first_offset <= header.base_offset
        for each in transactions
    )


def open_transactions(log: Log) -> list[OpenTransaction]:
    """Those of the partition, oldest first."""
    found = [
        OpenTransaction(
            each.producer_id,
            each.producer_epoch,
            each.transaction_start_offset,
            each.last_timestamp_ms,
        )
        for each in log.producers.producers.values()
        if each.transaction_start_offset >= 0
    ]
    return sorted(found, key=lambda each: each.first_offset)


async def find_marker(
    log: Log, header: BatchHeader, budget_bytes: int
) -> tuple[EndMarker | None, int, int]:
    """The producer's next marker, the offset up to which the log was searched for it, and what is
    left of the budget.
    """
    for window in oldest_first(log, header.base_offset):
        if budget_bytes <= 0:
            return None, window.first_offset, 0
        budget_bytes -= window.size_bytes
        try:
            with storage_refusals():
                found = await asyncio.to_thread(marker_in_window, window, header)
        except (CorruptBatchError, InvalidRecordError):
            return None, window.first_offset, 0  # the record itself may still be explained
        if found is not None:
            return found, found.offset, budget_bytes
    return None, EVERYTHING, max(budget_bytes, 1)


def marker_in_window(window: Window, header: BatchHeader) -> EndMarker | None:
    """The first marker of the batch's producer at or after the batch.

    Raises OSError, CorruptBatchError, InvalidRecordError.
    """
    for _, found, batch in scan_batches(window.file, window.position, window.end):
        is_later = found.base_offset >= header.base_offset
        if is_later and found.is_control and found.producer_id == header.producer_id:
            marker = read_end_marker(batch)
            if marker is not None:
                is_commit = marker.type is ControlType.commit
                return EndMarker(found.base_offset, is_commit, marker.timestamp_ms)
    return None
