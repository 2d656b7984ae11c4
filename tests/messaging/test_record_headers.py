"""Headers whose names the binding of librdkafka cannot return."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as PartitionAt

from ottla.client.client import Client
from ottla.client.question import Question
from ottla.messaging.record_headers import HeadersError, headers_of, known_headers
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.testing import Topic

COUNT = 200
"""A call that is hot is made without a check."""


def test_each_of_many_is_told(ottla_topic: Topic) -> None:
    def build(messages: Any) -> Any:
        evil = [Record(n, 0, None, b"", (("h\udcff", b"1"),)) for n in range(COUNT)]
        records = build_batch([*evil, Record(COUNT, 0, None, b"", (("h", None),))])
        data = messages.PartitionProduceData(index=0, records=records)
        topic = messages.TopicProduceData(name=ottla_topic.name, partition_data=(data,))
        return messages.ProduceRequest(
            transactional_id=None, acks=-1, timeout=5000, topic_data=(topic,)
        )

    with Client(ottla_topic.bootstrap, {}, client_id="tests") as client:
        client.ask_broker(1, Question(0, 9, build, 3))
    consumer = Consumer({"bootstrap.servers": ottla_topic.bootstrap, "group.id": "none"})
    consumer.assign([PartitionAt(ottla_topic.name, 0, 0)])
    records: list[Any] = []
    while len(records) <= COUNT:
        records += consumer.consume(COUNT, 0.1)
    consumer.close()
    found = [known_headers(each) for each in records]
    assert found == [*[None] * COUNT, [("h", None)]]
    assert known_headers(records[0]) is None  # asked again
    with pytest.raises(HeadersError, match=f"{ottla_topic.name}-0 at offset 0 has a header"):
        headers_of(records[0])
