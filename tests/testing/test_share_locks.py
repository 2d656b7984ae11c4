"""Time that passes over the acquisition locks of a share group."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import ShareConsumer

from ottla.testing import Broker, KitError, SharedBroker, Topic

WITHIN_S = 60


def share_consumer(topic: Topic, group: str) -> ShareConsumer:
    consumer = ShareConsumer(
        {
            "bootstrap.servers": topic.bootstrap,
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
        }
    )
    consumer.subscribe([topic.name])
    return consumer


def read_one(consumer: ShareConsumer) -> Any:
    end_s = time.monotonic() + WITHIN_S
    while time.monotonic() < end_s:
        for each in consumer.poll(0.2):
            if each.error() is None:
                return each
    raise AssertionError("no record")


def begin_at_the_earliest(bootstrap: str, group: str) -> None:
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    entry = ConfigEntry(
        "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result()


def test_a_record_that_is_not_acknowledged_goes_to_another() -> None:
    with Broker() as broker:
        topic = broker.create_topic("orders")
        begin_at_the_earliest(broker.bootstrap, "workers")
        topic.produce("order")
        first = share_consumer(topic, "workers")
        try:
            assert read_one(first).value() == b"order"
            before_ms = broker.now_ms()
            broker.advance_over_locks("workers")
            assert 30_000 <= broker.now_ms() - before_ms < 40_000
            second = share_consumer(topic, "workers")
            try:
                assert read_one(second).value() == b"order"
            finally:
                second.close()
        finally:
            first.close()


def test_the_time_of_other_tests_stays(ottla_broker: SharedBroker) -> None:
    with pytest.raises(KitError, match="time would pass for every test"):
        ottla_broker.advance_over_locks("workers")
