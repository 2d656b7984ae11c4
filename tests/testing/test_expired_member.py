"""A member that is taken for dead, in groups of each kind."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer
from tests.system.share_member import Member

from ottla.client.client import Client
from ottla.testing import Broker, KitError, Topic

WITHIN_S = 60


def consumer_of(topic: Topic, name: str, **settings: Any) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": topic.bootstrap,
            "group.id": topic.name,
            "client.id": name,
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    consumer.subscribe([topic.name])
    return consumer


def until(condition: Callable[[], bool], *consumers: Consumer) -> None:
    end_s = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < end_s
        for each in consumers:
            each.poll(0.05)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_others_get_its_partitions(ottla_broker: Broker, ottla_topic: Topic, protocol: str) -> None:
    settings = {"group.protocol": protocol}
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = "100"
    first = consumer_of(ottla_topic, "first", **settings)
    second = None
    try:
        until(lambda: len(first.assignment()) == 1, first)
        second = consumer_of(ottla_topic, "second", **settings)
        left = ottla_broker.expire_member(ottla_topic.name, "first")
        assert left
        # Nobody polls the first one: it cannot join again.
        until(lambda: len(second.assignment()) == 1, second)
    finally:
        for each in (second, first):
            if each is not None:
                each.close()


def test_the_member_of_a_share_group(ottla_broker: Broker, ottla_topic: Topic) -> None:
    group = f"shared-{ottla_topic.name}"
    with Client(ottla_topic.bootstrap) as client:
        member = Member(client, group)
        member.join(ottla_topic.name, 1)
        assert ottla_broker.expire_member(group) == member.member_id
        with pytest.raises(AssertionError, match="unknown_member_id"):
            member.beat()


def test_one_member_is_meant(ottla_broker: Broker, ottla_topic: Topic) -> None:
    with pytest.raises(KitError, match="has 0 members, not one; its client ids: no members"):
        ottla_broker.expire_member("nobody")
    group = f"two-{ottla_topic.name}"
    with Client(ottla_topic.bootstrap, client_id="app") as client:
        members = [Member(client, group), Member(client, group)]
        for each in members:
            each.beat(ottla_topic.name)
        with pytest.raises(KitError, match="has 2 members, not one; its client ids: app"):
            ottla_broker.expire_member(group)
        with pytest.raises(KitError, match="has 0 members with client id other"):
            ottla_broker.expire_member(group, "other")
