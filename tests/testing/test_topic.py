"""Records that a test writes and expects."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from ottla.testing import Broker, KitError, Topic


def test_records_come_back_as_written(ottla_topic: Topic) -> None:
    written = ottla_topic.produce(
        "text", b"bytes", None, {"a": [1]}, ("k", "v"), headers={"h": "1"}, timestamp_ms=5_000
    )
    assert [each.offset for each in written] == [0, 1, 2, 3, 4]
    read = ottla_topic.consume(5)
    assert [each.value for each in read] == [b"text", b"bytes", None, b'{"a": [1]}', b"v"]
    assert read[3].json == {"a": [1]}
    assert (read[4].key, read[4].headers, read[4].timestamp_ms) == (b"k", (("h", b"1"),), 5_000)
    assert ottla_topic.consume() == read
    assert ottla_topic.consume(2) == read[:2]
    ottla_topic.assert_records(["text", "bytes", None, {"value": {"a": [1]}}, ("k", "v")])


@pytest.mark.ottla_topic(partitions=2)
def test_the_order_of_partitions_does_not_matter(ottla_topic: Topic) -> None:
    ottla_topic.produce("b", partition=0)
    ottla_topic.produce("a", partition=1)
    ottla_topic.assert_records(["a", "b"])
    with pytest.raises(AssertionError, match="1 missing and 1 unexpected"):
        ottla_topic.assert_records(["a", "b"], in_order=True)


def test_a_difference_is_shown(ottla_topic: Topic) -> None:
    ottla_topic.produce("a", "c")
    with pytest.raises(AssertionError, match=r"(?s)1 missing and 1 unexpected.*- missing      'b'"):
        ottla_topic.assert_records(["a", "b"])


def test_waiting_has_a_limit(ottla_topic: Topic) -> None:
    with pytest.raises(KitError, match=r"waited 0.1 s for 1 record of .*; the topic has 0$"):
        ottla_topic.consume(1, timeout_s=0.1)
    ottla_topic.produce("a")
    with pytest.raises(KitError, match=r"waited 0.1 s for 2 records of .*; the topic has 1$"):
        ottla_topic.consume(2, timeout_s=0.1)
    with pytest.raises(AssertionError, match="1 missing"):
        ottla_topic.assert_records(["a", "b"], timeout_s=0.1)


def test_records_of_an_aborted_transaction_are_not_read(
    ottla_topic: Topic, ottla_broker: Broker
) -> None:
    producer = Producer(
        {"bootstrap.servers": ottla_topic.bootstrap, "transactional.id": ottla_topic.name}
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(ottla_topic.name, b"aborted")
    assert producer.flush(20) == 0
    producer.abort_transaction(20)
    ottla_topic.produce("committed")
    ottla_topic.assert_records(["committed"])
    assert [each.api for each in ottla_broker.requests("EndTxn")] == ["EndTxn"]


def test_a_record_that_the_broker_refuses(ottla_topic: Topic) -> None:
    with pytest.raises(KitError, match="too large"):
        ottla_topic.produce("x" * 1_100_000)


async def test_the_same_on_an_event_loop(ottla_topic: Topic) -> None:
    await ottla_topic.produce_async("a", key="k")
    assert [each.key for each in await ottla_topic.consume_async(1)] == [b"k"]
    await ottla_topic.assert_records_async([("k", "a")])


def test_a_topic_that_does_not_exist(ottla_broker: Broker) -> None:
    with pytest.raises(KitError, match="cannot create topic bad name: "):
        ottla_broker.create_topic("bad name")
