"""The list of groups, one of them, and the field that jumps to it."""

from __future__ import annotations

import time
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt
from tests.console.served_console import Visitor, serving

from ottla.client.admin.committed_offsets import commit_offsets
from ottla.client.admin.group_history import GroupHistory
from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.console.access import Access
from ottla.console.console import Console
from ottla.console.pages import group as group_page
from ottla.testing import Topic

EVIL = "<script>alert(1)</script>/&'\"? "


def committed(topic: Topic, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": topic.bootstrap, "group.id": group})
    consumer.commit(offsets=[PartitionAt(topic.name, 0, offset)], asynchronous=False)
    consumer.close()


def test_a_group_with_any_name_is_listed_and_shown(visitor: Visitor, ottla_topic: Topic) -> None:
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    for number in range(9):
        producer.produce(ottla_topic.name, str(number), partition=0)
    producer.flush()
    group = f"{EVIL}{ottla_topic.name}"
    committed(ottla_topic, group, 4)
    listed = visitor.get(f"/groups?q={quote(group)}&sort=lag")
    assert f"{' '.join(group.split())} empty classic {ottla_topic.name} 5" in listed.words
    found = visitor.get(f"/group?name={quote(group)}")
    assert "State empty Lag 5 Members 0" in found.words
    assert "Nobody reads as this group now, and it is 5 records behind." in found.words
    for page in (listed, found):
        assert "<script>alert" not in page.text
    jumped = visitor.ask("GET", f"/jump?q={quote(group.strip())}")
    assert jumped.headers["location"].startswith("/group?name=")


def test_spaces_around_a_name_belong_to_it(visitor: Visitor, ottla_topic: Topic) -> None:
    group = f" {ottla_topic.name} "
    with Client(ottla_topic.bootstrap, {}, client_id="tests") as client:  # librdkafka cuts them
        assert not commit_offsets(client, group, {TopicPartition(ottla_topic.name, 0): 0})
    found = visitor.get(f"/group?name={quote(group)}")
    assert found.status == 200
    assert "State empty" in found.words


def test_why_it_rebalanced_and_what_retention_removes_unread(
    visitor: Visitor, ottla_topic: Topic
) -> None:
    old_ms = int(time.time() * 1000) - 7 * 24 * 3_600_000 + 5 * 3_600_000
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    producer.produce(ottla_topic.name, b"x", partition=0, timestamp=old_ms)
    producer.flush()
    group = f"why-{ottla_topic.name}"
    committed(ottla_topic, group, 0)
    settings = {"bootstrap.servers": ottla_topic.bootstrap, "group.id": group}
    consumer = Consumer(settings | {"client.id": "<b>app-1", "enable.auto.commit": False})
    consumer.subscribe([ottla_topic.name])
    until_s = time.monotonic() + 30
    while not consumer.assignment() and time.monotonic() < until_s:
        consumer.poll(0.1)
    consumer.close()
    found = visitor.get(f"/group?name={group}")
    assert f"1 unread record of {ottla_topic.name}-0 goes in 4 h" in found.words
    assert " at the earliest." in found.words
    assert "<b>app-1 (127.0.0.1) joined" in found.words
    assert f"{ottla_topic.name} 0" in found.words
    assert "no member is left after" in found.words
    assert "<b>app-1" not in found.text


def test_a_group_that_does_not_exist(visitor: Visitor) -> None:
    found = visitor.get("/group?name=no-such-group-at-all")
    assert found.status == 404
    assert "There is no group" in found.words


def test_the_jump_field(visitor: Visitor, ottla_topic: Topic) -> None:
    name = ottla_topic.name
    assert visitor.ask("GET", f"/jump?q={name}").headers["location"].startswith(f"/topics/{name}/")
    part = name[:-1].upper()
    assert visitor.ask("GET", f"/jump?q={part}").headers["location"].startswith(f"/topics/{name}/")
    assert visitor.ask("GET", "/jump?q=%2F%2Fevil").headers["location"].startswith("/topics?q=")
    assert name in visitor.get(f"/places?q={name[:-2]}").text


def test_a_broker_with_its_folders_and_settings(visitor: Visitor) -> None:
    found = visitor.get("/brokers/1")
    assert "Log folders" in found.words
    assert "log.retention.hours" in found.words
    assert visitor.get("/brokers/77").status == 404


def test_brokers_that_keep_no_history_are_asked_seldom(
    ottla_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def not_ottla(_client: Client, name: str) -> GroupHistory:
        asked.append(name)
        raise NotOttlaError("not an Ottla broker.")

    monkeypatch.setattr(group_page, "group_history", not_ottla)
    monkeypatch.setattr(group_page, "REBALANCES_FRESH_S", 0.0)
    for name in ("g", "h"):
        committed(ottla_topic, f"{name}-{ottla_topic.name}", 0)
    with serving(Console(Access(ottla_topic.bootstrap, {}, "tests"))) as visitor:
        for name in ("g", "h", "g"):
            found = visitor.get(f"/group?name={name}-{ottla_topic.name}")
            assert found.status == 200
            assert "What came of it" not in found.words
    assert asked == [f"g-{ottla_topic.name}"]
