"""The part of Produce that only requests with a transactional id need: before the first append of a
transaction to a partition, its coordinator is asked (KIP-890).

From Produce 12 on the coordinator adds the partition to the transaction; a client of an older
version has added it, and the coordinator verifies that. A transaction that is ongoing in the
partition needs neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from ottla.api.context import Context
from ottla.log.verification import NOT_REQUIRED, Guard
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import INTERNAL_TOPICS
from ottla.records.errors import CorruptBatchError
from ottla.records.header import HEADER_BYTES, TRANSACTIONAL_BIT, BatchHeader, read_header
from ottla.replica.partition import Partition
from ottla.shards.step import ProducerEpoch
from ottla.transactions.stored import TopicPartition
from ottla.transactions.verification import asked_for_produce, produce_error

PartitionKey: TypeAlias = tuple[Any, int]
"""A topic's name or id, and a partition."""
Verified: TypeAlias = dict[PartitionKey, Guard | ApiError | None]
"""By partition: the guard of the append, or why it is refused; None if the transaction is ongoing
there."""

NOT_TRANSACTIONAL: Final[Verified] = {}

_ATTRIBUTES_END: Final = 23
"""In a batch; the last of their two bytes has the transactional bit."""


async def verify(
    transactional_id: str, batches: Sequence[tuple[PartitionKey, Any]], context: Context
) -> Verified:
    """Ask the coordinator about the partitions of one request; `batches` are its records.

    What cannot be verified because it cannot be appended either is left out: the append says why.
    """
    headers = {key: header for key, records in batches if (header := _header(records))}
    producers = {ProducerEpoch(each.producer_id, each.producer_epoch) for each in headers.values()}
    if len(producers) > 1:
        refused = ApiError(
            ErrorCode.invalid_producer_id_mapping,
            "the request has transactional records of more than one producer",
        )
        return {key: refused for key, _ in batches}
    asked = asked_for_produce(context.version)
    if not asked.adds and not context.broker.config.transaction_partition_verification_enable:
        return dict.fromkeys(headers, NOT_REQUIRED)
    found: Verified = {}
    unverified: dict[TopicPartition, PartitionKey] = {}
    for key, header in headers.items():
        try:
            partition: Partition = context.broker.partitions.find(*key)
            if partition.topic in INTERNAL_TOPICS:
                continue
            found[key] = partition.appends.begin_verification(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                version_2=asked.adds,
            )
        except ApiError as error:
            found[key] = error
            continue
        if found[key] is not None:
            unverified[TopicPartition(partition.topic, partition.index)] = key
    if unverified:
        (producer,) = producers
        errors = await context.broker.transaction_verifier.verify(
            transactional_id, producer, frozenset(unverified), asked
        )
        for named, error_code in errors.items():
            if error_code is not ErrorCode.none:
                found[unverified[named]] = ApiError(
                    produce_error(error_code, asked),
                    "the coordinator does not confirm that the partition belongs to the"
                    f" transaction: {error_code.name.upper()}",
                )
    return found


def refused_without_id(batches: Sequence[tuple[PartitionKey, Any]]) -> Verified:
    """For a request without a transactional id: all its partitions are refused if one has a
    transactional batch (KafkaApis.handleProduceRequest).
    """
    if not any(_header(records) for _, records in batches):
        return NOT_TRANSACTIONAL
    refused = ApiError(
        ErrorCode.transactional_id_authorization_failed,
        "the request has transactional records but no transactional id",
    )
    return {key: refused for key, _ in batches}


def _header(records: Any) -> BatchHeader | None:
    """The header of a transactional batch."""
    if not records or len(records) < HEADER_BYTES:
        return None
    if not records[_ATTRIBUTES_END - 1] & TRANSACTIONAL_BIT:
        return None
    try:
        header = read_header(records)
    except CorruptBatchError:
        return None
    return header if header.has_producer_id else None
