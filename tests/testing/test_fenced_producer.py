"""A transactional producer that is fenced."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from ottla.testing import Broker, Topic


def test_its_transaction_is_aborted_and_it_ends(ottla_broker: Broker, ottla_topic: Topic) -> None:
    name = f"id-{ottla_topic.name}"
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(ottla_topic.name, b"lost")
    producer.flush(30)
    ottla_broker.fence_producer(name)
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction(30)
    assert raised.value.args[0].code() == KafkaError._FENCED
    assert raised.value.args[0].fatal()
    ottla_topic.assert_records([])
