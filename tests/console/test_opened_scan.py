"""Which scan a query gets."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.client.topic_partition import TopicPartition
from ottla.console import opened_scan
from ottla.console.access import Access
from ottla.console.record_query import RecordQuery
from ottla.messaging.key_scan import KeyScan
from ottla.messaging.record_scan import RecordScan
from ottla.testing import Topic

ALL = RecordQuery("newest", None, None, "", "", "", "", "", "auto", "")
BY_KEY = RecordQuery("newest", None, None, "", "k", "", "", "", "auto", "")
BY_NUMBER = replace(BY_KEY, key="7")


def opened(
    access: Access, topic: Topic, query: RecordQuery, schemas: Any = None
) -> RecordScan | KeyScan:
    spans = {TopicPartition(topic.name, 0): (0, 1)}
    with access.client() as client:
        visit: Any = SimpleNamespace(
            access=access, client=client, console=SimpleNamespace(schemas=schemas)
        )
        known = client.metadata([topic.name]).topics[topic.name]
        scan = opened_scan.opened_scan(visit, known, query, spans, lambda each: each, None)
    found = scan.step(5.0)
    scan.close()
    if query.key in ("", "k"):
        assert [each.key() for each in found] == [b"k"]
    return scan


def test_brokers_that_find_keys_are_asked_for_them(
    ottla_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    producer.produce(ottla_topic.name, "v", "k")
    producer.flush()
    access = Access(ottla_topic.bootstrap, {}, "tests")
    assert isinstance(opened(access, ottla_topic, BY_KEY), KeyScan)
    assert isinstance(opened(access, ottla_topic, ALL), RecordScan)
    # A key may be what its data are decoded to, if that is JSON.
    assert isinstance(opened(access, ottla_topic, BY_KEY, schemas=object()), KeyScan)
    assert isinstance(opened(access, ottla_topic, BY_NUMBER), KeyScan)
    assert isinstance(opened(access, ottla_topic, BY_NUMBER, schemas=object()), RecordScan)
    as_text = replace(BY_NUMBER, form="text")
    assert isinstance(opened(access, ottla_topic, as_text, schemas=object()), KeyScan)
    asked = 0

    def not_ottlas(*_: Any, **__: Any) -> Any:
        nonlocal asked
        asked += 1
        raise NotOttlaError("it is not.")

    monkeypatch.setattr(opened_scan, "key_offsets", not_ottlas)
    others = Access(ottla_topic.bootstrap, {}, "tests")
    assert isinstance(opened(others, ottla_topic, BY_KEY), RecordScan)
    assert isinstance(opened(others, ottla_topic, BY_KEY), RecordScan)
    assert asked == 1, "Apache Kafka's write an error into their logs"
    access.close()
    others.close()


def test_what_is_wrong_with_the_partition_does_not_say_that_keys_are_not_found(
    ottla_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = TopicPartition(ottla_topic.name, 0)
    with Client(ottla_topic.bootstrap) as client:
        assert opened_scan.finds_keys(client, where)

        def refused(*_: Any, **__: Any) -> Any:
            raise ClientError("cannot search it.")

        monkeypatch.setattr(opened_scan, "key_offsets", refused)
        assert opened_scan.finds_keys(client, where)
