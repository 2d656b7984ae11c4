"""A rebalance that a test forces."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer
from tests.system.share_member import Member
from tests.system.streams_member import Member as StreamsMember

from ottla.client.client import Client
from ottla.testing import Broker, KitError, Topic

OFTEN = {
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.assignment.interval.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
}


def test_the_members_join_again(ottla_broker: Broker, ottla_topic: Topic) -> None:
    assigned: list[int] = []
    consumer = Consumer(
        {
            "bootstrap.servers": ottla_topic.bootstrap,
            "group.id": ottla_topic.name,
            "client.id": "member",
            "heartbeat.interval.ms": 50,
        }
    )
    consumer.subscribe([ottla_topic.name], on_assign=lambda _, found: assigned.append(len(found)))
    try:
        for wanted in ([1], [1, 1]):
            for _ in range(400):
                consumer.poll(0.05)
                if assigned == wanted:
                    break
            assert assigned == wanted
            if wanted == [1]:
                assert ottla_topic.rebalance() == [ottla_topic.name]
    finally:
        consumer.close()
    joins = ottla_broker.requests("JoinGroup", client_id="member")
    assert len(joins) >= 2


def test_a_group_without_members_is_refused(ottla_broker: Broker) -> None:
    with pytest.raises(KitError, match="group nobody cannot rebalance: its state is"):
        ottla_broker.rebalance("nobody")


def test_nobody_reads_the_topic(ottla_topic: Topic) -> None:
    with pytest.raises(KitError, match="no member of a group has a partition of topic"):
        ottla_topic.rebalance()


@pytest.mark.ottla(config=OFTEN, shared=True)
def test_partitions_of_a_consumer_group_move_and_come_back(ottla_broker: Broker) -> None:
    topic = ottla_broker.create_topic(partitions=2)
    happened: list[tuple[str, int]] = []
    consumer = Consumer(
        {
            "bootstrap.servers": topic.bootstrap,
            "group.id": topic.name,
            "group.protocol": "consumer",
        }
    )

    def note(what: str) -> Callable[..., None]:
        # The callback also comes for an assignment that has nothing new.
        return lambda _, found: happened.append((what, len(found))) if found else None

    consumer.subscribe([topic.name], on_assign=note("assigned"), on_revoke=note("revoked"))
    with ThreadPoolExecutor(1) as threads:
        try:
            poll_until(consumer, lambda: happened == [("assigned", 2)])
            rebalanced = threads.submit(topic.rebalance)
            poll_until(consumer, lambda: len(happened) == 3)
            assert happened[1:] == [("revoked", 1), ("assigned", 1)]
            assert rebalanced.result() == [topic.name]
        finally:
            consumer.close()


@pytest.mark.ottla(config=OFTEN, shared=True)
def test_nothing_would_move(ottla_broker: Broker) -> None:
    topic = ottla_broker.create_topic()
    consumer = Consumer(
        {
            "bootstrap.servers": topic.bootstrap,
            "group.id": topic.name,
            "group.protocol": "consumer",
        }
    )
    consumer.subscribe([topic.name])
    try:
        poll_until(consumer, lambda: len(consumer.assignment()) == 1)
        with pytest.raises(KitError, match="would move nothing: it has 1 member for 1 partition"):
            topic.rebalance()
    finally:
        consumer.close()


def poll_until(consumer: Consumer, condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end_s
        consumer.poll(0.05)


def test_a_share_group_rebalances(ottla_broker: Broker, ottla_topic: Topic) -> None:
    group = f"shared-{ottla_topic.name}"
    with Client(ottla_topic.bootstrap) as client:
        member = Member(client, group)
        member.join(ottla_topic.name, 1)
        ottla_broker.rebalance(group)
        before = member.epoch
        member.beat()
        assert member.epoch > before


@pytest.mark.ottla(config=OFTEN, shared=True)
def test_tasks_of_a_streams_group_move_and_are_shared_again(ottla_broker: Broker) -> None:
    topic = ottla_broker.create_topic(partitions=2)
    group = f"streams-{topic.name}"
    with Client(topic.bootstrap) as client:
        one = StreamsMember(client, group, topic.name)
        one.join(4)
        assert topic.rebalance() == [group]
        with pytest.raises(AssertionError, match="unknown_member_id"):
            one.beat()
        other = StreamsMember(client, group, topic.name)
        other.join(4)
        one.epoch, one.active = 0, {}
        share_tasks(one, other)
        # It is the member whose id comes first.
        gone, left = sorted((one, other), key=lambda each: each.member_id)
        ottla_broker.rebalance(group)
        with pytest.raises(AssertionError, match="unknown_member_id"):
            gone.beat()
        left.join(4)
        gone.epoch, gone.active = 0, {}
        share_tasks(one, other)
        for each in (one, other):
            each.leave()
        with pytest.raises(KitError, match=f"group {group} cannot rebalance: it has no members"):
            ottla_broker.rebalance(group)


def share_tasks(*members: StreamsMember) -> None:
    """Until each has two of the four."""
    end_s = time.monotonic() + 60
    while any(sum(map(len, each.active.values())) != 2 for each in members):
        assert time.monotonic() < end_s
        for each in members:
            each.beat()
        time.sleep(0.02)
