"""The journey of one message: Ottla's own request, key 20000, not advertised and not Kafka's.

Request header v1, then JSON; the answer is a response header v0, then JSON. An Apache Kafka broker
closes the connection on it.

    request   {"journey": 1, "topic": "flights", "partition": 2 or null, and one of
               "offset": 1234, "key": "base64", "latest": true}
    answer    the document of `ottla.journey.explain`, or
              {"journey": 1, "error": {"code", "message", and what helps}}

Without an offset, key or `latest` the answer is an error that lists the partitions, with the
offsets they have. A key is looked for in all partitions where none is given, likely ones first, and
the newest record is told. One journey at a time is explained, so that a flood of them is a queue.

A partition's leader tells, for it alone knows all. Another broker answers `not_leader`, with the
number of the one that is (null: none is). Asked without a partition, a broker answers for those it
leads; `elsewhere` lists the others, which are to be asked for at their leaders.

Codes: bad_request, unknown_topic, unknown_partition, which_offset, key_not_found, empty,
not_leader, storage_error, not_available.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.api.context import Context
from ottla.broker.journey_facts import Around, gather, largest_timestamp
from ottla.broker.journey_search import find_newest
from ottla.broker.partition import Partition
from ottla.controller.image import NO_LEADER
from ottla.journey.explain import VERSION, explain
from ottla.journey.moment import Document
from ottla.journey.partitioner import likely_partitions
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versions import JOURNEY

KEY: Final = JOURNEY
ACCESS: Final = (
    Access(Operation.READ, Resource.TOPIC),
    Access(Operation.DESCRIBE, Resource.GROUP),
)
LARGEST_OFFSET: Final = 2**63 - 1
MAX_KEY_BYTES: Final = 65_536
MAX_SUGGESTIONS: Final = 1000

_STORAGE: Final = (ErrorCode.kafka_storage_error, ErrorCode.corrupt_message)


class Refusal(Exception):  # noqa: N818 - an answer, not a failure
    """What is said instead of a journey."""

    def __init__(self, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.document = {"journey": VERSION, "error": {"code": code, "message": message, **more}}


class Question(NamedTuple):
    """Which message is meant."""

    topic: str
    partition: int | None
    offset: int | None
    key: bytes | None
    latest: bool


async def handle_json(request: dict[str, Any], context: Context) -> dict[str, Any]:
    """The journey's document, or an error's."""
    try:
        question = read_question(request)
    except Refusal as refusal:
        return refusal.document
    partitions: list[Partition] = []
    try:
        partitions = partitions_of(question, context)
        async with context.broker.journey.turn:
            partition, offset = await find(question, partitions, context)
            return await tell(question.topic, partition, offset, context) | elsewhere(
                question, context
            )
    except Refusal as refusal:
        return refusal.document | elsewhere(question, context)
    except ApiError as error:
        if any(each.log.is_closed for each in partitions):
            return deleted_meanwhile(question.topic).document
        code = "storage_error" if error.code in _STORAGE else "not_available"
        return Refusal(code, str(error)).document


def read_question(request: dict[str, Any]) -> Question:
    """The request's fields, or a Refusal that names the one that is wrong."""
    if request.get("journey") != VERSION:
        raise bad(f"this broker tells journeys of version {VERSION}")
    topic, partition, offset = (request.get(name) for name in ("topic", "partition", "offset"))
    if not isinstance(topic, str) or not topic:
        raise bad("`topic` is to be a name")
    if partition is not None and not is_count(partition, 2**31 - 1):
        raise bad("`partition` is to be a number from 0 on")
    if offset is not None and not is_count(offset, LARGEST_OFFSET):
        raise bad("`offset` is to be a number from 0 on")
    key = read_key(request.get("key"))
    latest = request.get("latest", False)
    if not isinstance(latest, bool):
        raise bad("`latest` is to be true or false")
    if (offset is not None) + (key is not None) + latest > 1:
        raise bad("only one of `offset`, `key` and `latest` can be meant")
    return Question(topic, partition, offset, key, latest)


def read_key(said: Any) -> bytes | None:
    if said is None:
        return None
    try:
        key = base64.b64decode(said, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise bad("`key` is to be base64") from None
    if len(key) > MAX_KEY_BYTES:
        raise bad(f"`key` may have {MAX_KEY_BYTES} bytes")
    return key


def is_count(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def bad(message: str) -> Refusal:
    return Refusal("bad_request", message)


def deleted_meanwhile(topic: str) -> Refusal:
    return Refusal("unknown_topic", f"topic {topic!r} was deleted meanwhile")


def partitions_of(question: Question, context: Context) -> list[Partition]:
    """The topic's partitions that this broker leads, or the one asked for."""
    topic, image = question.topic, context.broker.image.topic(question.topic)
    if image is None:
        names = sorted(context.broker.image.topics)[:MAX_SUGGESTIONS]
        raise Refusal("unknown_topic", f"there is no topic {topic!r}", topics=names)
    own = context.broker.config.id
    found = [
        partition
        for partition in sorted(
            context.broker.partitions.of_topic(topic), key=lambda one: one.index
        )
        if partition.index < len(image.partitions)
        and image.partitions[partition.index].leader == own
    ]
    wanted, count = question.partition, len(image.partitions)
    if wanted is None:
        if found:
            return found
        raise Refusal("not_leader", f"this broker leads no partition of topic {topic!r}")
    if wanted >= count:
        has = "only partition 0" if count == 1 else f"partitions 0 to {count - 1}"
        message = f"topic {topic!r} has no partition {wanted}, it has {has}"
        raise Refusal("unknown_partition", message, partitions=ranges(found))
    for partition in found:
        if partition.index == wanted:
            return [partition]
    leader = image.partitions[wanted].leader
    message = f"partition {wanted} of topic {topic!r} is led by another broker"
    if leader == NO_LEADER:
        message = f"partition {wanted} of topic {topic!r} has no leader now"
    raise Refusal("not_leader", message, leader=None if leader == NO_LEADER else leader)


def elsewhere(question: Question, context: Context) -> Document:
    """Where no partition was named: those which another broker leads, or none (nothing then)."""
    image = context.broker.image.topic(question.topic)
    if image is None or question.partition is not None:
        return {}
    own = context.broker.config.id
    others = [index for index, state in enumerate(image.partitions) if state.leader != own]
    return {"elsewhere": others} if others else {}


def ranges(partitions: Sequence[Partition]) -> list[Document]:
    """Which offsets there are."""
    return [
        {
            "partition": partition.index,
            "start_offset": partition.log.start_offset,
            "end_offset": partition.log.end_offset,
        }
        for partition in partitions
    ]


async def find(
    question: Question, partitions: list[Partition], context: Context
) -> tuple[Partition, int]:
    """The partition and offset that are meant."""
    if question.key is not None:
        return await find_key(question.key, partitions)
    if question.latest:
        filled = [one for one in partitions if one.log.end_offset > one.log.start_offset]
        if not filled:
            message = f"nothing is stored in topic {question.topic!r} now"
            raise Refusal("empty", message, partitions=ranges(partitions))
        newest = max(filled, key=newest_ms)
        return newest, newest.log.end_offset - 1
    if question.offset is None:
        message = "say which message: an offset, a key, or the latest"
        raise Refusal("which_offset", message, partitions=ranges(partitions))
    image = context.broker.image.topic(question.topic)
    count = len(image.partitions) if image else 0
    if question.partition is None and count > 1:
        message = f"say in which partition offset {question.offset} lies"
        raise Refusal("which_offset", message, partitions=ranges(partitions))
    return partitions[0], question.offset


def newest_ms(partition: Partition) -> int:
    """The largest timestamp of the last segment that holds something."""
    log = partition.log
    return largest_timestamp(next(one for one in reversed(log.segments) if one.size_bytes))


async def find_key(key: bytes, partitions: list[Partition]) -> tuple[Partition, int]:
    by_index = {partition.index: partition for partition in partitions}
    likely = likely_partitions(key, len(partitions)) if len(partitions) > 1 else []
    order = [by_index.pop(index) for index in likely if index in by_index]
    hit, searched = await find_newest([*order, *by_index.values()], key)
    if hit is None:
        message = "no record has this key"
        if not all(one.whole for one in searched):
            message = "no record has this key among the newest; older ones were not looked at"
        said = [
            {"partition": one.partition, "down_to_offset": one.down_to, "whole": one.whole}
            for one in searched
        ]
        raise Refusal("key_not_found", message, searched=said)
    return next(one for one in partitions if one.index == hit.partition), hit.offset


async def tell(topic: str, partition: Partition, offset: int, context: Context) -> Document:
    broker = context.broker
    image = broker.image.topic(topic)
    if image is None or partition.index >= len(image.partitions):
        raise deleted_meanwhile(topic)
    state = image.partitions[partition.index]
    count, replicas = len(image.partitions), len(state.replicas)
    around = Around(broker.config.id, count, replicas, broker.journey, broker.groups, state)
    return explain(await gather(partition, offset, around, broker.clock.now_ms()))
