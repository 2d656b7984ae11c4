"""A member that is fenced, in groups of each kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, ShareConsumer
from tests.system.share_member import Member
from tests.system.streams_member import Member as StreamsMember

from ottla.client.client import Client
from ottla.testing import Broker, KitError

WITHIN_S = 60
OFTEN = {
    f"group.{kind}.{name}": 100
    for kind in ("consumer", "share")
    for name in ("min.heartbeat.interval.ms", "heartbeat.interval.ms")
}
OFTEN |= {f"group.{kind}.assignment.interval.ms": 0 for kind in ("consumer", "share", "streams")}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Members learn at once."""
    with Broker(config=OFTEN | {"group.streams.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


def until(condition: Callable[[], object], poll: Callable[[], object] = lambda: None) -> None:
    end_s = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < end_s
        poll()


def test_a_consumer_loses_its_partitions_and_gets_them_back(broker: Broker) -> None:
    topic = broker.create_topic()
    happened: list[str] = []
    consumer = Consumer(
        {
            "bootstrap.servers": topic.bootstrap,
            "group.id": topic.name,
            "group.protocol": "consumer",
            "client.id": "app",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(
        [topic.name],
        on_assign=lambda *_: happened.append("assigned"),
        on_revoke=lambda *_: happened.append("revoked"),
        on_lost=lambda *_: happened.append("lost"),
    )
    try:
        until(lambda: happened == ["assigned"], lambda: consumer.poll(0.05))
        broker.fence_member(topic.name, "app")
        until(lambda: len(happened) == 3, lambda: consumer.poll(0.05))
        assert happened == ["assigned", "lost", "assigned"]
        topic.produce("after")
        values: list[Any] = []

        def read() -> None:
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                values.append(message.value())

        until(lambda: values == [b"after"], read)
    finally:
        consumer.close()


def test_a_static_classic_member_ends(broker: Broker) -> None:
    topic = broker.create_topic()
    consumer = Consumer(
        {
            "bootstrap.servers": topic.bootstrap,
            "group.id": topic.name,
            "group.instance.id": "one",
            "heartbeat.interval.ms": 100,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic.name])
    codes: list[int] = []

    def poll() -> None:
        try:
            message = consumer.poll(0.05)
        except KafkaException as error:
            codes.append(error.args[0].code())
            return
        if message is not None and message.error() is not None:
            codes.append(message.error().code())

    try:
        until(lambda: len(consumer.assignment()) == 1, poll)
        broker.fence_member(topic.name)
        until(lambda: codes, poll)
        assert codes[0] in (KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL)
    finally:
        consumer.close()


def test_a_dynamic_classic_member_cannot_be(broker: Broker) -> None:
    topic = broker.create_topic()
    consumer = Consumer({"bootstrap.servers": topic.bootstrap, "group.id": topic.name})
    consumer.subscribe([topic.name])
    try:
        until(lambda: len(consumer.assignment()) == 1, lambda: consumer.poll(0.05))
        with pytest.raises(KitError, match=r"it has no group.instance.id. Use expire_member"):
            broker.fence_member(topic.name)
    finally:
        consumer.close()


def test_a_share_consumer_goes_on(broker: Broker) -> None:
    topic = broker.create_topic()
    group = f"shared-{topic.name}"
    consumer = ShareConsumer({"bootstrap.servers": topic.bootstrap, "group.id": group})
    consumer.subscribe([topic.name])
    values: list[Any] = []

    def read() -> None:
        values.extend(each.value() for each in consumer.poll(0.2) if each.error() is None)

    def write_and_read() -> None:
        topic.produce("x")
        read()

    try:
        until(lambda: values, write_and_read)  # the group begins at the latest record
        broker.fence_member(group)
        topic.produce("after")
        until(lambda: b"after" in values, read)
    finally:
        consumer.close()


def test_what_a_member_of_a_share_group_hears(broker: Broker) -> None:
    topic = broker.create_topic()
    with Client(topic.bootstrap) as client:
        member = Member(client, f"heard-{topic.name}")
        member.join(topic.name, 1)
        assert broker.fence_member(member.group) == member.member_id
        with pytest.raises(AssertionError, match="fenced_member_epoch"):
            member.beat()


@pytest.mark.parametrize(
    ("how", "error"), [("fence", "fenced_member_epoch"), ("expire", "unknown_member_id")]
)
def test_members_of_a_streams_group(broker: Broker, how: str, error: str) -> None:
    topic = broker.create_topic(partitions=2)
    group = f"streams-{topic.name}"
    with (
        Client(topic.bootstrap, client_id="app") as client,
        Client(topic.bootstrap, client_id="other") as another,
    ):
        member = StreamsMember(client, group, topic.name)
        member.join(4)
        other = StreamsMember(another, group, topic.name)
        other.beat()
        gone = broker.fence_member if how == "fence" else broker.expire_member
        assert gone(group, "app") == member.member_id
        with pytest.raises(AssertionError, match=error):
            member.beat()
        member.epoch, member.active = 0, {}
        member.beat()
