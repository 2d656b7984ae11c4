"""DescribeProducers (key 61): the producers known to a replica of a partition (KIP-664).

Any replica answers: an administrator looks for the replicas with a hanging transaction. Each
partition is answered once: a short request that repeats one with many producers would get
gigabytes.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.naming import check_topic_name
from ottla.log.producer_state import Producer
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices, parts

KEY: Final = 61
ACCESS: Final = (Access(Operation.READ, Resource.TOPIC),)
NOT_HOSTED: Final = "This server does not host this topic-partition."


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    topics, slices = [], Slices()
    answered: set[tuple[str, int]] = set()
    for topic in request.topics:
        answers = []
        for index in topic.partition_indexes:
            await slices.count()
            if (topic.name, index) in answered:
                continue
            answered.add((topic.name, index))
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
                states: list[Any] = []
                for some in parts(producers):
                    await slices.count(len(some))
                    states += [_state(each, build) for each in some]
                answer = build.PartitionResponse(
                    partition_index=index, active_producers=tuple(states)
                )
            answers.append(answer)
        topics.append(build.TopicResponse(name=topic.name, partitions=tuple(answers)))
    return build.DescribeProducersResponse(topics=tuple(topics))


def _state(producer: Producer, build: Any) -> Any:
    return build.ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp_ms,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.transaction_start_offset,
    )
