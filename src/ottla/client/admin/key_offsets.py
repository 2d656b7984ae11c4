"""Where a key's records are: Ottla's own request, which a partition's leader answers a part of at a
time.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.client.admin.own_requests import Document, ask_own, check_own
from ottla.client.client import Client
from ottla.client.errors import ClientError, Needs
from ottla.client.metadata import Metadata
from ottla.client.patience import Retry
from ottla.client.topic_partition import TopicPartition
from ottla.journey.partitioner import likely_partitions
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versions import KEY_OFFSETS

MAX_OFFSETS: Final = 1000
"""In one answer."""
MAX_KEY_BYTES: Final = 65_536


class KeyOffsets(NamedTuple):
    """The offsets with the key of all records from `begin` to before `end`, in their order.
    `records`: about how many records these are.
    """

    offsets: list[int]
    begin: int
    end: int
    records: int


def key_offsets(
    client: Client,
    where: TopicPartition,
    key: bytes,
    begin: int,
    end: int,
    *,
    from_end: bool,
    most: int,
    known: Metadata | None = None,
) -> KeyOffsets:
    """Of a part of the offsets from `begin` to before `end`: of the first of them, or `from_end`
    the last. `known`: the topic's metadata, which are asked for again if the leader is another one.
    Raises ClientError: NotOttlaError where the leader does not know the request.
    """
    question = {
        "topic": where.topic,
        "partition": where.partition,
        "key": base64.b64encode(key).decode(),
        "begin": begin,
        "end": end,
        "from_end": from_end,
        "most": min(most, MAX_OFFSETS),
    }
    retry = Retry(client.patience)
    while True:
        try:
            answer = _ask(client, where, question, known or client.metadata([where.topic]))
        except ClientError:
            if known is None:
                raise
            known = None  # the leader that was may be away
            continue
        known = None
        if "error" not in answer:
            return KeyOffsets(
                answer["offsets"], answer["begin"], answer["end"], int(answer["records"])
            )
        if answer["error"]["code"] != "not_leader" or retry.is_over:
            needs = Needs("Read", where.topic)
            check_own(answer, f"search {where}", ErrorCode.topic_authorization_failed, needs)
        retry.wait()


def in_likely_order(
    key: bytes,
    partitions: Collection[TopicPartition],
    count: int,
    seen: Sequence[tuple[bytes, int]] = (),
) -> list[TopicPartition]:
    """Those first that a common partitioner chooses for the key; the topic has `count`. `seen`:
    keys of its records with their partitions, which tell the partitioner.
    """
    likely = likely_partitions(key, max(count, 1), seen)
    rank = {number: at for at, number in enumerate(likely)}
    return sorted(partitions, key=lambda each: (rank.get(each.partition, count), each))


def _ask(
    client: Client, where: TopicPartition, question: Mapping[str, Any], metadata: Metadata
) -> Document:
    topic = metadata.topics.get(where.topic)
    found = topic.partitions.get(where.partition) if topic is not None else None
    leader = metadata.brokers.get(found.leader) if found is not None else None
    if leader is None:
        raise ClientError(f"cannot search {where}: it has no leader.")
    return ask_own(client, leader.address, KEY_OFFSETS, "key_offsets", "finds no keys", question)
