"""Time, retention and compaction of a broker, at the test's command."""

from __future__ import annotations

import subprocess
import sys

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from ottla.testing import Broker, KitError, SharedBroker

OWN = pytest.mark.ottla(config={"group.min.session.timeout.ms": 1000}, shared=True)
DAY_MS = 24 * 3_600_000


def test_the_kit_is_imported_without_kafkas_messages() -> None:
    """kio, and hypothesis with it, take longer to import than a broker takes to start."""
    code = "import sys, ottla.testing.broker; print({'kio', 'hypothesis'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")


@OWN
def test_retention_after_a_day(ottla_broker: Broker) -> None:
    topic = ottla_broker.create_topic(config={"retention.ms": DAY_MS})
    topic.produce("old", timestamp_ms=ottla_broker.now_ms())
    before_ms = ottla_broker.now_ms()
    ottla_broker.advance(hours=23)
    topic.assert_records(["old"])
    assert ottla_broker.advance(hours=2) >= before_ms + 25 * 3_600_000
    topic.assert_records([])
    topic.produce("new", timestamp_ms=ottla_broker.now_ms())
    ottla_broker.retain()
    topic.assert_records([{"value": "new", "offset": 1}])


@OWN
def test_retention_by_size_needs_a_closed_segment(ottla_broker: Broker) -> None:
    topic = ottla_broker.create_topic(config={"retention.bytes": 0})
    now_ms = ottla_broker.now_ms()
    topic.produce("a", timestamp_ms=now_ms)
    ottla_broker.roll(topic.name)
    topic.produce("b", timestamp_ms=now_ms)
    ottla_broker.retain()
    assert "a" not in [each.text for each in topic.consume()]


@OWN
def test_compaction(ottla_broker: Broker) -> None:
    topic = ottla_broker.create_topic(config={"cleanup.policy": "compact"})
    topic.produce(("k", "1"), ("l", "1"), ("k", "2"))
    ottla_broker.compact(topic.name)
    topic.assert_records([("l", "1"), ("k", "2")])
    topic.produce(("l", "2"))
    ottla_broker.compact(topic.name)  # far below min.cleanable.dirty.ratio
    topic.assert_records([("k", "2"), ("l", "2")])


@OWN
def test_a_transaction_times_out(ottla_broker: Broker) -> None:
    topic = ottla_broker.create_topic()
    producer = Producer(
        {
            "bootstrap.servers": ottla_broker.bootstrap,
            "transactional.id": topic.name,
            "transaction.timeout.ms": 60_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic.name, b"never")
    assert producer.flush(20) == 0
    topic.produce("after", timestamp_ms=ottla_broker.now_ms())
    topic.assert_records([], timeout_s=0.1)  # the transaction is open
    ottla_broker.advance(minutes=2)
    topic.assert_records(["after"])
    with pytest.raises(KafkaException):
        producer.commit_transaction(20)


@OWN
def test_a_session_of_a_group_times_out(ottla_broker: Broker) -> None:
    topic = ottla_broker.create_topic()
    consumer = Consumer(
        {
            "bootstrap.servers": ottla_broker.bootstrap,
            "client.id": "member",
            "group.id": topic.name,
            "heartbeat.interval.ms": 60,
        }
    )
    lost = []
    consumer.subscribe([topic.name], on_lost=lambda _, partitions: lost.extend(partitions))
    try:
        for _ in range(200):
            consumer.poll(0.05)
            if consumer.assignment():
                break
        ottla_broker.advance(minutes=10)
        for _ in range(200):
            consumer.poll(0.05)
            if lost:
                break
        assert [each.topic for each in lost] == [topic.name]
    finally:
        consumer.close()


@OWN
def test_what_is_refused(ottla_broker: Broker, ottla_session_broker: SharedBroker) -> None:
    with pytest.raises(KitError, match="time only goes forward"):
        ottla_broker.advance()
    with pytest.raises(KitError, match="time would pass for every test"):
        ottla_session_broker.advance(hours=1)
    with pytest.raises(KitError, match="there is no topic nowhere"):
        ottla_broker.roll("nowhere")
    topic = ottla_broker.create_topic()
    with pytest.raises(KitError, match="is not compacted: create it with cleanup"):
        ottla_broker.compact(topic.name)


@pytest.mark.full  # starts a process
def test_a_wrong_setting_is_the_error() -> None:
    broker = Broker({"num.partitions": "none"})
    with pytest.raises(KitError, match=r"num\.partitions"):
        broker.start()
    with pytest.raises(KitError, match="cannot ask the broker to now_ms"):
        broker.now_ms()
