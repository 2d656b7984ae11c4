"""DescribeProducers (key 61): the producers known to a replica of a partition (KIP-664).

Any replica answers: an administrator looks for the replicas with a hanging transaction.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.naming import check_topic_name
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices

KEY: Final = 61
ACCESS: Final = (Access(Operation.READ, Resource.TOPIC),)
NOT_HOSTED: Final = "This server does not host this topic-partition."


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    topics, slices = [], Slices()
    for topic in request.topics:
        answers = []
        for index in topic.partition_indexes:
            await slices.count()
            try:
                check_topic_name(topic.name)
                if context.broker.image.topic(topic.name) is None:
                    # Only then has the error a message (KafkaApis.handleDescribeProducersRequest).
                    raise ApiError(ErrorCode.unknown_topic_or_partition, NOT_HOSTED)
                partition = context.broker.partitions.find(topic.name, index)
                producers = partition.active_producers()
            except ApiError as error:
                answer = build.PartitionResponse(
                    partition_index=index, error_code=error.code, error_message=error.message
                )
            else:
                states = tuple(
                    build.ProducerState(
                        producer_id=each.producer_id,
                        producer_epoch=each.producer_epoch,
                        last_sequence=each.last_sequence,
                        last_timestamp=each.last_timestamp_ms,
                        coordinator_epoch=each.coordinator_epoch,
                        current_txn_start_offset=each.transaction_start_offset,
                    )
                    for each in producers
                )
                answer = build.PartitionResponse(partition_index=index, active_producers=states)
            answers.append(answer)
        topics.append(build.TopicResponse(name=topic.name, partitions=tuple(answers)))
    return build.DescribeProducersResponse(topics=tuple(topics))
