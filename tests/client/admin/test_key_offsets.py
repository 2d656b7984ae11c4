"""Asking a partition's leader where a key's records are."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, closing

from ottla.client.admin.key_offsets import KeyOffsets, in_likely_order, key_offsets
from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.client import Client
from ottla.client.errors import ClientError, RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.versions import KEY_OFFSETS

ONE = TopicPartition("t", 1)
FOUND = {"key_offsets": 1, "offsets": [3, 7], "begin": 2, "end": 9, "records": 7}


def refused(code: str) -> dict[str, Any]:
    return {"key_offsets": 1, "error": {"code": code, "message": f"it is {code}"}}


class Leaders:
    """A cluster that answers with these documents in turn, and remembers what was asked."""

    def __init__(self, *documents: Any) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        left = list(documents)

        def answer(address: str, body: bytes) -> bytes:
            self.asked.append((address, json.loads(body)))
            return json.dumps(left.pop(0) if len(left) > 1 else left[0]).encode()

        self.cluster = FakeCluster({KEY_OFFSETS: [answer]})

    def ask(self, where: TopicPartition = ONE, most: int = 5000) -> KeyOffsets:
        return ask(self.cluster.client(), where, most)


def ask(client: Client, where: TopicPartition = ONE, most: int = 5) -> KeyOffsets:
    return key_offsets(client, where, b"\xff", 2, 9, from_end=True, most=most)


def test_the_leader_of_the_partition_is_asked() -> None:
    leaders = Leaders(FOUND)
    assert leaders.ask() == ([3, 7], 2, 9, 7)
    question = {
        "key_offsets": 1, "topic": "t", "partition": 1, "key": base64.b64encode(b"\xff").decode(),
        "begin": 2, "end": 9, "from_end": True, "most": 1000,
    }  # fmt: skip
    assert leaders.asked == [("b2:9092", question)]


def test_it_is_asked_again_while_leadership_moves() -> None:
    assert Leaders(refused("not_leader"), refused("not_leader"), FOUND).ask().offsets == [3, 7]
    moving = Leaders(refused("not_leader"))
    with pytest.raises(ClientError, match="cannot search t-1: it is not_leader"):
        moving.ask()
    assert moving.cluster.slept_s > 30


def test_a_partition_without_a_leader_cannot_be_searched() -> None:
    with pytest.raises(ClientError, match="t-2: it has no leader"):
        Leaders(FOUND).ask(TopicPartition("t", 2))


def test_errors_say_what_was_wrong() -> None:
    with pytest.raises(ClientError, match="cannot search t-1: it is storage_error"):
        Leaders(refused("storage_error")).ask()
    with pytest.raises(RefusedError) as error:
        Leaders(refused("not_authorized")).ask()
    assert error.value.lacking == ("Read", "topic", "t")


@pytest.mark.parametrize("document", [{"other": 1}, [], "x"])
def test_a_server_that_answers_something_else(document: Any) -> None:
    with pytest.raises(NotOttlaError, match="not an Ottla"):
        Leaders(document).ask()


def test_apache_kafka_closes_the_connection() -> None:
    cluster = FakeCluster({KEY_OFFSETS: [closing]})
    with pytest.raises(NotOttlaError, match="finds no keys"):
        ask(cluster.client())


def test_the_partitions_that_partitioners_choose_come_first() -> None:
    """Murmur2 puts `key0` into partition 2 of 8, CRC-32 into 6."""
    partitions = [TopicPartition("t", number) for number in range(8)]
    order = [each.partition for each in in_likely_order(b"key0", partitions, 8)]
    assert order[:2] == [2, 6]
    assert sorted(order) == list(range(8))
    some = in_likely_order(b"key0", [partitions[0], partitions[6]], 8)
    assert [each.partition for each in some] == [6, 0]
