"""AddPartitionsToTxn (key 24): partitions that a transaction is about to write (KIP-98).

v0-3, from clients: one transaction. v2: PRODUCER_FENCED. v3: flexible. v4 (KIP-890), from brokers:
many transactions, and verifying without adding. v5: the error TRANSACTION_ABORTABLE. All partitions
of a transaction are added or none: with one that cannot be added, the others get
OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final, NamedTuple

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import INTERNAL_TOPICS
from ottla.runtime.slices import Slices, parts
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


class _Errors(NamedTuple):
    """The errors of some partitions."""

    found: Mapping[TopicPartition, ErrorCode]
    others: ErrorCode
    """That of all partitions that are not in `found`."""


def is_between_brokers(request: Any) -> bool:
    """Clients send versions up to 3 only."""
    version: int = request.__version__
    return version >= _FROM_BROKERS


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    if context.version >= _FROM_BROKERS:
        return build.AddPartitionsToTxnResponse(
            error_code=ErrorCode.none,
            results_by_transaction=tuple(
                [
                    await _from_broker(transaction, context, slices)
                    for transaction in request.transactions
                ]
            ),
        )
    partitions = await _partitions(request.v3_and_below_topics, slices)
    errors = await _add(
        request.v3_and_below_transactional_id,
        ProducerEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch),
        partitions,
        context,
        slices,
    )
    return build.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=await _by_topic(partitions, errors, context, slices)
    )


async def _from_broker(transaction: Any, context: Context, slices: Slices) -> Any:
    await slices.count()
    producer = ProducerEpoch(transaction.producer_id, transaction.producer_epoch)
    partitions = await _partitions(transaction.topics, slices)
    act = _verify if transaction.verify_only else _add
    errors = await act(transaction.transactional_id, producer, partitions, context, slices)
    return context.messages.AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=await _by_topic(partitions, errors, context, slices),
    )


async def _verify(
    transactional_id: str,
    producer: ProducerEpoch,
    partitions: Set[TopicPartition],
    context: Context,
    slices: Slices,
) -> _Errors:
    refused = await _refused(partitions, context, slices)
    if refused is not None:
        return refused
    try:
        found = await context.broker.transactions.verify(
            transactional_id, producer, frozenset(partitions)
        )
    except ApiError as error:
        return _Errors({}, error.code)
    return _Errors(found, ErrorCode.none)


async def _add(
    transactional_id: str,
    producer: ProducerEpoch,
    partitions: Set[TopicPartition],
    context: Context,
    slices: Slices,
) -> _Errors:
    refused = await _refused(partitions, context, slices)
    if refused is not None:
        return refused
    client_version = EPOCH_BUMP_VERSION if context.version >= _FROM_BROKERS else 0
    request = AddRequest(transactional_id, producer, frozenset(partitions), client_version)
    try:
        error = await context.broker.transactions.add(request)
    except ApiError as failed:
        error = failed.code
    if error is ErrorCode.producer_fenced and context.version < _FENCED:
        error = ErrorCode.invalid_producer_epoch
    return _Errors({}, error)


async def _refused(
    partitions: Set[TopicPartition], context: Context, slices: Slices
) -> _Errors | None:
    """The errors of all partitions if one of them cannot be added."""
    refused = {}
    image = context.broker.image
    for some in parts(partitions):
        await slices.count(len(some))
        for each in some:
            if context.version < _FROM_BROKERS and each.topic in INTERNAL_TOPICS:
                # AddOffsetsToTxn adds those that clients write to.
                refused[each] = ErrorCode.topic_authorization_failed
            elif image.partition(*each) is None:
                refused[each] = ErrorCode.unknown_topic_or_partition
    return _Errors(refused, ErrorCode.operation_not_attempted) if refused else None


async def _partitions(topics: Any, slices: Slices) -> Set[TopicPartition]:
    """Each partition once, in the request's order."""
    found: dict[TopicPartition, None] = {}
    for topic in topics:
        await slices.count()
        for indexes in parts(topic.partitions):
            await slices.count(len(indexes))
            for index in indexes:
                found[TopicPartition(topic.name, index)] = None
    return found.keys()


async def _by_topic(
    partitions: Set[TopicPartition], errors: _Errors, context: Context, slices: Slices
) -> tuple[Any, ...]:
    build = context.messages
    topics: dict[str, list[Any]] = {}
    for some in parts(partitions):
        await slices.count(len(some))
        for each in some:
            topics.setdefault(each.topic, []).append(
                build.AddPartitionsToTxnPartitionResult(
                    partition_index=each.partition,
                    partition_error_code=errors.found.get(each, errors.others),
                )
            )
    answers = []
    for name, results in topics.items():
        await slices.count()
        answers.append(
            build.AddPartitionsToTxnTopicResult(name=name, results_by_partition=tuple(results))
        )
    return tuple(answers)
