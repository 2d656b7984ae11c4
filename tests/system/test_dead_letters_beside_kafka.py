"""Dead letters of share groups (KIP-1191): the same records are rejected on Apache Kafka and here,
and the dead letters are the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from components.apache_kafka import ApacheKafka, KafkaJars
from confluent_kafka import AcknowledgeType, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from tests.system.test_share_groups import QUICK_SHARES, Member, begin_at_the_earliest

from components import fixture

kafka_jars = fixture.kafka_jars
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

SETTINGS = QUICK_SHARES | {
    "errors.deadletterqueue.auto.create.topics.enable": "true",
    "num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}
SOURCE = "orders"
PARTITION = 4
RECORDS = 6
WITHIN_S = 120
ALLOWED = {"errors.deadletterqueue.group.enable": "true"}

Letter = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]
"""Partition, key, value and headers."""


class Case(NamedTuple):
    """A share group, its topic of dead letters, and what its members say of each record."""

    topic: str
    partitions: int
    """0: it does not exist."""
    settings: dict[str, str]
    """Of the topic."""
    says: Callable[[int], AcknowledgeType]
    expected: int
    copies: bool = False
    deliveries: int = 1


REJECT, RELEASE, ACCEPT = (
    AcknowledgeType.REJECT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.ACCEPT,
)
CASES = {
    "headers": Case("dlq.headers", 1, ALLOWED, lambda _: REJECT, RECORDS),
    "copies": Case(
        "dlq.copies", 3, ALLOWED, lambda at: REJECT if at % 2 else ACCEPT, RECORDS // 2, True
    ),
    "small": Case(
        "dlq.small", 1, {**ALLOWED, "max.message.bytes": "700"}, lambda _: REJECT, RECORDS, True
    ),
    "often": Case("dlq.often", 0, {}, lambda _: RELEASE, RECORDS, True, 2),
    "elsewhere": Case("elsewhere", 1, ALLOWED, lambda _: REJECT, 0),
    "forbidden": Case("dlq.forbidden", 1, {}, lambda _: REJECT, 0),
}


def carry_out(bootstrap: str) -> dict[str, Any]:
    """The dead letters of each case, and the settings of the topic that the broker made."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(SOURCE, PARTITION + 1, 1)]
    topics += [
        NewTopic(each.topic, each.partitions, 1, config=each.settings)
        for each in CASES.values()
        if each.partitions
    ]
    for made in admin.create_topics(topics).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(
            SOURCE,
            b"value %d" % number,
            None if number == 1 else b"key %d" % number,
            partition=PARTITION,
            headers=[("its own", b"header")],
        )
        producer.flush(30)  # a batch each
    for group, case in CASES.items():
        begin_at_the_earliest(
            bootstrap,
            group,
            errors_deadletterqueue_topic_name=case.topic,
            errors_deadletterqueue_copy_record_enable=str(case.copies).lower(),
            share_delivery_count_limit="2",
        )
    members = {group: Member(bootstrap, group, SOURCE) for group in CASES}
    for group, member in members.items():
        end = time.monotonic() + WITHIN_S
        while len(member.got) < RECORDS * CASES[group].deliveries:
            assert time.monotonic() < end, (group, member.got)
            poll(member, CASES[group].says)
    found = {group: read(bootstrap, case) for group, case in CASES.items()}
    for member in members.values():
        member.client.close()
    return {"letters": found, "created": described(admin, "dlq.often")}


def poll(member: Member, says: Callable[[int], AcknowledgeType]) -> None:
    messages = member.client.poll(1.0)
    for message in messages:
        assert message.error() is None, message.error()
        member.got.append((message.partition(), message.offset()))
        member.client.acknowledge(message, says(message.offset()))
    if messages:
        member.client.commit_sync(30)


def read(bootstrap: str, case: Case) -> list[Letter]:
    """What the topic has, in the order of partitions and offsets of the records."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    end = time.monotonic() + WITHIN_S
    while (count := len(consumer.list_topics(case.topic, 30).topics[case.topic].partitions)) == 0:
        assert time.monotonic() < end, f"{case.topic} does not exist"
        time.sleep(0.5)
    consumer.assign([TopicPartition(case.topic, index, 0) for index in range(count)])
    found: list[Letter] = []
    quiet_since = time.monotonic()
    while len(found) < case.expected or time.monotonic() < quiet_since + 1:
        assert time.monotonic() < end, f"{len(found)} letters in {case.topic}"
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            quiet_since = time.monotonic()
            found.append(
                (message.partition(), message.key(), message.value(), message.headers() or [])
            )
    consumer.close()
    return sorted(found, key=lambda each: (each[0], each[3]))


def described(admin: AdminClient, topic: str) -> dict[str, Any]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (settings,) = (each.result(30) for each in admin.describe_configs([resource]).values())
    own = {name: each.value for name, each in settings.items() if each.source == 1}
    return {"partitions": len(admin.list_topics(topic, 30).topics[topic].partitions), **own}


def test_dead_letters_are_those_of_apache_kafka(
    new_broker: Any, kafka_jars: KafkaJars, tmp_path: Path
) -> None:
    options = [f"{name}={value}" for name, value in SETTINGS.items()]
    broker = new_broker(*(part for each in options for part in ("--config", each)))
    mine = carry_out(broker.bootstrap)
    kafka = ApacheKafka(kafka_jars, tmp_path / "kafka", SETTINGS, jvm=fixture.JVM_FLAGS)
    kafka.start()
    try:
        kafka.child.wait_for_port(kafka.port, fixture.START_WAIT_MS)
        theirs = carry_out(kafka.address)
    finally:
        kafka.stop()
    counts = {group: len(letters) for group, letters in mine["letters"].items()}
    assert counts == {group: case.expected for group, case in CASES.items()}
    assert mine["letters"] == theirs["letters"]
    assert mine["created"] == theirs["created"]
    copied = mine["letters"]["copies"]
    assert [(each[0], each[2]) for each in copied] == [(1, b"value %d" % at) for at in (1, 3, 5)]
