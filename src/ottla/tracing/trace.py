"""Traces one message: finds it, gathers the facts about it, and explains them."""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from ottla.journey.explain import explain
from ottla.journey.facts import Facts
from ottla.journey.key_elsewhere import KeyElsewhere
from ottla.journey.moment import Document
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.partition import Partition
from ottla.runtime.clock import Clock
from ottla.runtime.one_at_a_time import Turn
from ottla.storage.after_rebuild import after_rebuild
from ottla.tracing.find_message import (
    Cluster,
    JourneyError,
    MessageQuery,
    deleted_meanwhile,
    find_key_elsewhere,
    find_message,
    led_elsewhere,
    led_partitions,
    list_messages,
)
from ottla.tracing.gather_facts import Around, gather
from ottla.tracing.group_coordinators import AskingBroker, find_groups, steps_of_some
from ottla.tracing.share_groups import SharingBroker, shared_facts
from ottla.tracing.transaction_coordinators import CoordinatingBroker, find_transactions

_STORAGE: Final = (ErrorCode.kafka_storage_error, ErrorCode.corrupt_message)


class TracedBroker(Cluster, CoordinatingBroker, AskingBroker, SharingBroker, Protocol):
    """The parts of a broker that know something about a message."""

    clock: Clock


async def trace(query: MessageQuery, broker: TracedBroker) -> Document:
    """The journey of the requested message, or the list of its key's. Raises JourneyError.

    One message is traced at a time, so that many requests wait in a queue. While other brokers are
    asked, the next ones have their turn.
    """
    partitions: list[Partition] = []
    try:
        partitions = led_partitions(query, broker)
        async with broker.timelines.explaining.next() as turn:
            document = await after_rebuild(partial(_document, query, partitions, broker, turn))
            others = led_elsewhere(query, broker)
            return document | ({"elsewhere": others} if others else {})
    except JourneyError as error:
        error.elsewhere = led_elsewhere(query, broker)
        raise
    except ApiError as error:
        if any(each.log.is_closed for each in partitions):
            raise deleted_meanwhile(query.topic) from None
        code = "storage_error" if error.code in _STORAGE else "not_available"
        raise JourneyError(code, str(error)) from None


async def _document(
    query: MessageQuery, partitions: list[Partition], broker: TracedBroker, turn: Turn
) -> Document:
    if query.all_of_key:
        assert query.key is not None, "the request was checked"
        return await list_messages(query.key, query.topic, partitions)
    found = await find_message(query, partitions, broker)
    return explain(await _facts(query.topic, *found, broker, turn))


async def _facts(
    topic: str,
    partition: Partition,
    offset: int,
    elsewhere: KeyElsewhere | None,
    broker: TracedBroker,
    turn: Turn,
) -> Facts:
    image = broker.image.topic(topic)
    if image is None or partition.index >= len(image.partitions):
        raise deleted_meanwhile(topic)
    state = image.partitions[partition.index]
    count, replicas = len(image.partitions), len(state.replicas)
    around = Around(
        broker.config.id,
        count,
        replicas,
        broker.timelines,
        lambda at: turn.away(find_groups(topic, partition.index, at, broker)),
        lambda ids, topic_partition: turn.away(find_transactions(ids, topic_partition, broker)),
        lambda at, whom: turn.away(steps_of_some(topic, partition.index, at, whom, broker)),
        lambda key: find_key_elsewhere(key, topic, partition.index, broker),
        elsewhere,
        lambda names, at: turn.away(
            shared_facts(names, image.topic_id, partition.index, at, broker)
        ),
        state,
    )
    return await gather(partition, offset, around, broker.clock.now_ms)
