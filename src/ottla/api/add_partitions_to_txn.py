"""AddPartitionsToTxn (key 24): partitions that a transaction is about to write (KIP-98).

v0-3, from clients: one transaction. v2: PRODUCER_FENCED. v3: flexible. v4 (KIP-890), from brokers:
many transactions, and verifying without adding. v5: the error TRANSACTION_ABORTABLE. All partitions
of a transaction are added or none: with one that cannot be added, the others get
OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import INTERNAL_TOPICS
from ottla.shards.step import ProducerEpoch
from ottla.transactions.requests import EPOCH_BUMP_VERSION, AddRequest
from ottla.transactions.stored import TopicPartition

KEY: Final = 24
ACCESS: Final = (
    Access(Operation.WRITE, Resource.TRANSACTIONAL_ID),
    Access(Operation.WRITE, Resource.TOPIC),
)

_FENCED: Final = 2
_FROM_BROKERS: Final = 4

Errors = dict[TopicPartition, ErrorCode]


def is_between_brokers(request: Any) -> bool:
    """Clients send versions up to 3 only."""
    version: int = request.__version__
    return version >= _FROM_BROKERS


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    if context.version >= _FROM_BROKERS:
        return build.AddPartitionsToTxnResponse(
            error_code=ErrorCode.none,
            results_by_transaction=tuple(
                [await _from_broker(transaction, context) for transaction in request.transactions]
            ),
        )
    errors = await _add(
        AddRequest(
            request.v3_and_below_transactional_id,
            ProducerEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch),
            _partitions(request.v3_and_below_topics),
            client_version=0,
        ),
        context,
    )
    return build.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=_by_topic(errors, context)
    )


async def _from_broker(transaction: Any, context: Context) -> Any:
    producer = ProducerEpoch(transaction.producer_id, transaction.producer_epoch)
    partitions = _partitions(transaction.topics)
    transactional_id = transaction.transactional_id
    if transaction.verify_only:
        errors = await _verify(transactional_id, producer, partitions, context)
    else:
        added = AddRequest(transactional_id, producer, partitions, EPOCH_BUMP_VERSION)
        errors = await _add(added, context)
    return context.messages.AddPartitionsToTxnResult(
        transactional_id=transactional_id, topic_results=_by_topic(errors, context)
    )


async def _verify(
    transactional_id: str,
    producer: ProducerEpoch,
    partitions: frozenset[TopicPartition],
    context: Context,
) -> Errors:
    refused = _refused(partitions, context)
    if refused:
        return refused
    try:
        return await context.broker.transactions.verify(transactional_id, producer, partitions)
    except ApiError as error:
        return dict.fromkeys(partitions, error.code)


async def _add(request: AddRequest, context: Context) -> Errors:
    refused = _refused(request.partitions, context)
    if refused:
        return refused
    try:
        error = await context.broker.transactions.add(request)
    except ApiError as failed:
        error = failed.code
    if error is ErrorCode.producer_fenced and context.version < _FENCED:
        error = ErrorCode.invalid_producer_epoch
    return dict.fromkeys(request.partitions, error)


def _refused(partitions: frozenset[TopicPartition], context: Context) -> Errors:
    """The errors of all partitions if one of them cannot be added; else empty."""
    refused = {}
    image = context.broker.image
    for each in partitions:
        if context.version < _FROM_BROKERS and each.topic in INTERNAL_TOPICS:
            # AddOffsetsToTxn adds those that clients write to.
            refused[each] = ErrorCode.topic_authorization_failed
        elif image.partition(*each) is None:
            refused[each] = ErrorCode.unknown_topic_or_partition
    if refused:
        return dict.fromkeys(partitions, ErrorCode.operation_not_attempted) | refused
    return {}


def _partitions(topics: Any) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.name, index) for topic in topics for index in topic.partitions
    )


def _by_topic(errors: Errors, context: Context) -> tuple[Any, ...]:
    build = context.messages
    topics: dict[str, list[Any]] = {}
    for (topic, index), error in sorted(errors.items()):
        topics.setdefault(topic, []).append(
            build.AddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=error
            )
        )
    return tuple(
        build.AddPartitionsToTxnTopicResult(name=topic, results_by_partition=tuple(results))
        for topic, results in topics.items()
    )
