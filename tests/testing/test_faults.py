"""Faults as clients meet them."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from kafka import KafkaConsumer

from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import write_request
from ottla.protocol.messages import messages_of
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.testing import Broker, KitError, Topic
from ottla.testing.broker_request import NoResponseError, ask_broker
from ottla.testing.fault_rule import KIT_CLIENT_ID

SHORT_S = 0.05
KIT: dict[str, Any] = {"client_id": KIT_CLIENT_ID}


def produce(topic: Topic, value: bytes, **settings: Any) -> KafkaError | None:
    """With a client of the application under test; returns the error that it reports."""
    errors: list[KafkaError | None] = []
    settings = {"client.id": "app", "retry.backoff.ms": 5, "log_level": 0, **settings}
    producer = Producer({"bootstrap.servers": topic.bootstrap, **settings})
    producer.produce(topic.name, value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    return errors[0]


def produce_request(topic: Topic, acks: int = -1) -> Any:
    build = messages_of(0, 9, "request")
    batch = build_batch([Record(0, 1_000, None, b"raw")])
    data = build.PartitionProduceData(index=0, records=batch)
    named = build.TopicProduceData(name=topic.name, partition_data=(data,))
    return build.ProduceRequest(acks=acks, timeout=30_000, topic_data=(named,))


def metadata_request(topic: Topic) -> Any:
    build = messages_of(3, 9, "request")
    return build.MetadataRequest(topics=(build.MetadataRequestTopic(name=topic.name),))


def test_a_producer_retries_until_the_errors_end(ottla_broker: Broker, ottla_topic: Topic) -> None:
    fault = ottla_broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=3)
    assert produce(ottla_topic, b"x") is None
    assert len(fault.happened) == 3
    assert {each.fault for each in fault.happened} == {"error NOT_LEADER_OR_FOLLOWER"}
    produced = ottla_broker.requests("Produce", client_id="app", topic=ottla_topic.name)
    assert [each.fault is None for each in produced] == [False, False, False, True]
    ottla_topic.assert_records(["x"])


def test_an_error_that_no_retry_mends(ottla_broker: Broker, ottla_topic: Topic) -> None:
    ottla_broker.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", topic=ottla_topic.name)
    error = produce(ottla_topic, b"x")
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    ottla_topic.assert_records([])


@pytest.mark.parametrize(("idempotent", "copies"), [(True, 1), (False, 2)])
def test_a_record_whose_acknowledgement_was_lost(
    ottla_broker: Broker, ottla_topic: Topic, idempotent: bool, copies: int
) -> None:
    ottla_broker.disconnect("Produce", after=True, times=1)
    assert produce(ottla_topic, b"x", **{"enable.idempotence": idempotent}) is None
    ottla_topic.assert_records(["x"] * copies)


def test_a_connection_that_ends_before_the_append(ottla_broker: Broker, ottla_topic: Topic) -> None:
    fault = ottla_broker.disconnect("Produce", times=1)
    assert produce(ottla_topic, b"x", **{"enable.idempotence": False}) is None
    ottla_topic.assert_records(["x"])
    assert len(fault.happened) == 1


def test_an_error_after_the_append(ottla_broker: Broker, ottla_topic: Topic) -> None:
    with ottla_broker.fail("Produce", "REQUEST_TIMED_OUT", after=True, **KIT):
        answer = ask_broker(ottla_topic.bootstrap, produce_request(ottla_topic))
    refused = answer.responses[0].partition_responses[0]
    assert refused.error_code is ErrorCode.request_timed_out
    assert refused.base_offset in (-1, 0)
    assert ask_broker(ottla_topic.bootstrap, produce_request(ottla_topic)).responses[
        0
    ].partition_responses[0].error_code is (ErrorCode.none)
    ottla_topic.assert_records(["raw", "raw"])


def test_a_lost_response_leaves_the_connection_open(
    ottla_broker: Broker, ottla_topic: Topic
) -> None:
    fault = ottla_broker.lose_response("Produce", times=1, **KIT)
    with pytest.raises(NoResponseError, match="no response from"):
        ask_broker(ottla_topic.bootstrap, produce_request(ottla_topic), SHORT_S)
    assert len(fault.wait()) == 1
    ottla_topic.assert_records(["raw"])


def test_a_delay_before_or_after(ottla_broker: Broker, ottla_topic: Topic) -> None:
    ottla_broker.delay("Produce", 60_000, times=1, **KIT)
    ottla_broker.delay("Produce", 60_000, times=1, after=True, **KIT)
    for stored in ([], ["raw"]):
        with pytest.raises(NoResponseError, match="no response from"):
            ask_broker(ottla_topic.bootstrap, produce_request(ottla_topic), SHORT_S)
        ottla_topic.assert_records(stored)
    ottla_broker.delay("Metadata", 1, topic=ottla_topic.name, times=1, **KIT)
    assert ask_broker(ottla_topic.bootstrap, metadata_request(ottla_topic)).brokers


def test_refused_metadata_is_whole_again_after_the_fault(
    ottla_broker: Broker, ottla_topic: Topic
) -> None:
    request = metadata_request(ottla_topic)
    (before,) = ask_broker(ottla_topic.bootstrap, request).topics
    with ottla_broker.fail("Metadata", "TOPIC_AUTHORIZATION_FAILED", **KIT):
        (refused,) = ask_broker(ottla_topic.bootstrap, request).topics
    assert refused.error_code is ErrorCode.topic_authorization_failed
    assert ask_broker(ottla_topic.bootstrap, request).topics == (before,)


def test_throttling_is_reported_and_kept(ottla_broker: Broker, ottla_topic: Topic) -> None:
    fault = ottla_broker.throttle("Metadata", 60_000, topic=ottla_topic.name, **KIT)
    answer = ask_broker(ottla_topic.bootstrap, metadata_request(ottla_topic))
    assert answer.throttle_time == 60_000
    host, _, port = ottla_topic.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        frame = write_request(metadata_request(ottla_topic), 1, KIT_CLIENT_ID)
        connection.sendall(frame)
        assert connection.recv(1)
        connection.sendall(frame)
        connection.settimeout(SHORT_S)
        with pytest.raises(TimeoutError):
            _read_to_the_end(connection)
    # The third request is not taken from the connection.
    assert len(fault.happened) == 2


def _read_to_the_end(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


def test_only_the_chosen_topic_is_met(ottla_broker: Broker, ottla_topic: Topic) -> None:
    other = ottla_broker.create_topic()
    fault = ottla_broker.fail("Produce", "NOT_ENOUGH_REPLICAS", topic=other.name)
    assert produce(ottla_topic, b"x") is None
    assert fault.happened == []
    fault.remove()
    assert produce(other, b"x") is None


def test_a_fetch_fails_within_a_fetch_session(ottla_broker: Broker, ottla_topic: Topic) -> None:
    """Once a session exists, requests name no topics."""
    ottla_topic.produce("first")
    consumer = KafkaConsumer(
        ottla_topic.name,
        bootstrap_servers=ottla_topic.bootstrap,
        client_id="reader",
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
        fetch_max_wait_ms=10,
        retry_backoff_ms=5,
        reconnect_backoff_ms=5,
    )
    try:
        assert next(consumer).value == b"first"
        fault = ottla_broker.fail(
            "Fetch", "NOT_LEADER_OR_FOLLOWER", times=2, topic=ottla_topic.name
        )
        ottla_topic.produce("second")
        assert next(consumer).value == b"second"
        assert {each.topics for each in fault.happened} == {(ottla_topic.name,)}
    finally:
        consumer.close()


def test_metadata_fails_with_the_brokers_known(ottla_broker: Broker, ottla_topic: Topic) -> None:
    with ottla_broker.fail("Metadata", "LEADER_NOT_AVAILABLE", topic=ottla_topic.name, **KIT):
        answer = ask_broker(ottla_topic.bootstrap, metadata_request(ottla_topic))
    assert answer.brokers
    (topic,) = answer.topics
    assert (topic.error_code, topic.partitions) == (ErrorCode.leader_not_available, ())


def test_an_error_for_a_request_without_a_response(
    ottla_broker: Broker, ottla_topic: Topic
) -> None:
    with (
        ottla_broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", **KIT),
        pytest.raises(NoResponseError, match="closed the connection"),
    ):
        ask_broker(ottla_topic.bootstrap, produce_request(ottla_topic, acks=0))
    ottla_topic.assert_records([])


def test_wrong_arguments_are_refused(ottla_broker: Broker) -> None:
    with pytest.raises(KitError, match="do you mean Produce"):
        ottla_broker.fail("Prodce", "NOT_LEADER_OR_FOLLOWER")
    with pytest.raises(KitError, match="1 or more"):
        ottla_broker.disconnect("Produce", times=0)
    with pytest.raises(KitError, match="0 or more, not -5"):
        ottla_broker.delay("Produce", -5)
    fault = ottla_broker.disconnect("Heartbeat")
    with pytest.raises(KitError, match="for 1 Heartbeat request"):
        fault.wait(timeout_s=0)
