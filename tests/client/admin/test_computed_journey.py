"""Journeys on brokers that record none: what any Kafka can tell, from a real broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from bench.brokers import running
from components.apache_kafka import KafkaJars
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.client.admin import computed_journey as journey_computed
from ottla.client.admin.asked_journeys import asked_journey
from ottla.client.admin.computed_journey import UnrecordedError, computed_journey
from ottla.client.admin.records import offset_at
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.journey.words.line import Branch
from ottla.journey.words.tell import tell

WITHIN_S = 60
MOVING = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)


@pytest.fixture(
    scope="module",
    params=["Ottla", pytest.param("Apache Kafka", marks=[pytest.mark.full, pytest.mark.kafka])],
)
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """Topics `flights`, which a group reads; `paid`, with transactions; `none`, without records."""
    jars = KafkaJars.at_hand()
    if request.param != "Ottla" and jars is None:
        pytest.skip("Apache Kafka is not in the cache: `components.fetch`")
    with running(request.param, jars) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        topics = [NewTopic("flights", 2, 1), NewTopic("paid", 1, 1), NewTopic("none", 2, 1)]
        topics.append(NewTopic("closed", 1, 1))
        for future in admin.create_topics(topics).values():
            future.result(WITHIN_S)
        publish(broker.address)
        commit(broker.address, "analytics", 3)
        transact(broker.address)
        yield broker.address


def publish(bootstrap: str) -> None:
    """One batch per partition: librdkafka sends batches that compression makes no smaller plain."""
    settings = {"compression.type": "lz4", "partitioner": "murmur2", "linger.ms": 60_000}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for number in range(200):
        producer.produce("flights", f"value {number}", key=f"key {number}")
    assert producer.flush(WITHIN_S) == 0


def commit(bootstrap: str, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    limit = time.monotonic() + WITHIN_S
    while True:
        try:
            consumer.commit(offsets=[TopicPartition("flights", 0, offset)], asynchronous=False)
            break
        except KafkaException as refused:  # Kafka is creating the topic of the offsets
            if refused.args[0].code() not in MOVING or time.monotonic() > limit:
                raise
            time.sleep(0.1)
    consumer.close()


def transact(bootstrap: str) -> None:
    """Offsets: 0 aborted, 1 marker, 2 committed, 3 marker, 4 open, 5 committed by another producer,
    6 its marker. Of `closed`: 0 committed, 1 its marker.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "till"})
    producer.init_transactions(WITHIN_S)
    for end in (producer.abort_transaction, producer.commit_transaction, None):
        producer.begin_transaction()
        producer.produce("paid", "x")
        producer.flush(WITHIN_S)
        if end is not None:
            end(WITHIN_S)
    for topic in ("paid", "closed"):
        other = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"other-{topic}"})
        other.init_transactions(WITHIN_S)
        other.begin_transaction()
        other.produce(topic, "x")
        other.commit_transaction(WITHIN_S)


def ask(bootstrap: str, topic: str, **more: Any) -> dict[str, Any]:
    with Client(bootstrap) as client:
        return computed_journey(client, {"journey": 1, "topic": topic, "partition": None, **more})


def lines_of(branch: Branch) -> list[str]:
    return [branch.text(), *(line for below in branch.below for line in lines_of(below))]


def test_what_the_log_and_its_readers_tell(bootstrap: str) -> None:
    found = ask(bootstrap, "flights", partition=0, offset=2)
    assert (found["computed"], found["recorded"], found["state"]) == (True, False, "stored")
    assert found["published"]["key"]["text"].startswith("key ")
    assert found["appended"]["batch"]["compression"] == "lz4"
    assert found["appended"]["segment"] is None
    chosen = found["partition_chosen"]
    assert chosen["agreeing"]["murmur2"] == chosen["keys"] > 20, "keys of records near it"
    assert chosen["why"].startswith("murmur2 (Java's default)")
    (group,) = found["read"]
    assert (group["group"], group["doubt"]) == ("analytics", "not_recorded")
    assert found["replicated"]["committed"]
    assert found["retention"]["not_before_ms"] > found["published"]["timestamp_ms"]


def test_nothing_is_said_to_be_recorded(bootstrap: str) -> None:
    lines = lines_of(tell(ask(bootstrap, "flights", partition=0, offset=2)))
    assert lines[0].endswith("computed now: these brokers record nothing")
    assert any(line.startswith("Appended  time not recorded  by an unrecorded") for line in lines)
    assert any(line.startswith("batch ") and "at byte" not in line for line in lines)
    assert any("analytics  passed it  time not recorded" in line for line in lines)
    assert not any("segment" in line.split()[:1] or "false on the broker" in line for line in lines)


def test_a_group_before_the_message_has_not_read_it(bootstrap: str) -> None:
    (group,) = ask(bootstrap, "flights", partition=0, offset=8)["read"]
    assert (group["state"], group["behind"]) == ("not_yet", 6)


def test_the_end_is_that_of_consumers(bootstrap: str) -> None:
    found = ask(bootstrap, "flights", partition=0, offset=5_000)
    assert found["state"] == "not_yet_written"
    said = lines_of(tell(found))[1]
    assert said.startswith("Not yet written: or not replicated yet: consumers get the offsets bef")


@pytest.mark.parametrize(
    ("offset", "state", "reading"),
    [
        (0, "aborted", "aborted"),
        (1, "aborted", "control"),
        (2, "committed", "visible"),
        (3, "committed", "control"),
        (4, "open", "waiting"),
        (5, "unknown", "waiting"),
    ],
)
def test_transactions(bootstrap: str, offset: int, state: str, reading: str) -> None:
    found = ask(bootstrap, "paid", offset=offset)
    assert found["transaction"]["state"] == state
    assert found["read_committed"]["state"] == reading
    lines = lines_of(tell(found))
    assert not any("None" in line for line in lines)


def test_an_open_transaction_has_its_coordinator(bootstrap: str) -> None:
    coordinator = ask(bootstrap, "paid", offset=4)["read_committed"]["held_by"]["coordinator"]
    assert (coordinator["transactional_id"], coordinator["hanging"]) == ("till", False)


def test_a_marker_that_was_not_searched_is_not_said_to_be_missing(bootstrap: str) -> None:
    """The record's own transaction has ended; an older one holds the last stable offset."""
    assert ask(bootstrap, "paid", offset=5)["transaction"]["searched_to"] == 5


def test_the_latest_is_no_marker(bootstrap: str) -> None:
    assert ask(bootstrap, "closed", latest=True)["offset"] == 0


def test_the_latest_of_all_partitions(bootstrap: str) -> None:
    found = ask(bootstrap, "flights", latest=True)
    assert found["offset"] == found["log"]["end_offset"] - 1


@pytest.mark.parametrize(
    ("topic", "question", "code"),
    [
        ("flihgts", {"offset": 1}, "unknown_topic"),
        ("flights", {"partition": 7, "offset": 1}, "unknown_partition"),
        ("flights", {"partition": 7, "latest": True}, "unknown_partition"),
        ("flights", {"offset": 1}, "which_offset"),
        ("flights", {"partition": 1}, "which_offset"),
    ],
)
def test_errors_are_those_of_ottlas_brokers(
    bootstrap: str, topic: str, question: dict[str, Any], code: str
) -> None:
    assert ask(bootstrap, topic, **question)["error"]["code"] == code


def test_what_only_a_broker_can_search_is_refused(bootstrap: str) -> None:
    with pytest.raises(UnrecordedError, match="a search by key needs brokers of Ottla"):
        ask(bootstrap, "flights", key="a2V5")
    with pytest.raises(ClientError, match="topic 'none' has no records"):
        ask(bootstrap, "none", latest=True)


def test_the_command_computes_only_where_nothing_is_recorded(
    bootstrap: str, request: pytest.FixtureRequest
) -> None:
    question = {"journey": 1, "topic": "flights", "partition": 0, "offset": 2}
    found = asked_journey(bootstrap, question)
    is_kafka = request.node.callspec.params["bootstrap"] != "Ottla"
    assert (found.get("computed", False), found["recorded"]) == (is_kafka, not is_kafka)


def test_the_offsets_of_a_partition_are_asked_once(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []

    def offset(client: Client, leader: int, partition: Any, timestamp: int) -> int:
        asked.append((partition.partition, timestamp))
        return offset_at(client, leader, partition, timestamp)

    monkeypatch.setattr(journey_computed, "offset_at", offset)
    with Client(bootstrap) as client:
        computed_journey(client, {"journey": 1, "topic": "flights", "latest": True})
    assert len(asked) == len(set(asked)) == 4
