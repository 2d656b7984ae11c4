"""A cluster that has something for every page of the console: a shop with orders, groups that read
them, a pipeline, a transaction, users, ACLs, quotas and schemas.

The pictures of the console show it, and the tests look at every page of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

from components.registry_server import RegistryServer, run_registry
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt

from ottla.client.admin.acls import create_acls
from ottla.client.admin.committed_offsets import commit_offsets
from ottla.client.admin.quotas import alter_quotas
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.admin.users import set_password
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.pipelines.destination import Destination
from ottla.pipelines.progress.offset_metadata import OffsetMetadata, Run
from ottla.pipelines.rejected_offsets import RejectedOffsets, RejectedRange
from ottla.protocol.access import Operation, Resource
from ottla.quotas.entity import Entity, Kind
from ottla.security.acl import Acl, Entry, Pattern, PatternType, Permission
from ottla.testing import Broker

SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
PAGES: Final = {
    "overview": "/",
    "topics": "/topics",
    "new-topic": "/topics/new",
    "messages": "/topics/orders/messages",
    "message": "/topics/orders/messages/0/30",
    "journey": "/topics/orders/messages/0/30/journey",
    "send-again": "/topics/orders/send-again?text=Ada",
    "partitions": "/topics/readings/partitions",
    "partition": "/topics/readings/partitions/0",
    "settings": "/topics/readings/settings",
    "topic-groups": "/topics/orders/groups",
    "produce": "/topics/orders/produce",
    "groups": "/groups",
    "group": "/group?name=billing",
    "pipelines": "/pipelines",
    "pipeline": "/pipeline?name=lake",
    "transactions": "/transactions",
    "security": "/security",
    "schemas": "/schemas",
    "schema": "/schema?subject=orders-value",
    "schema-by-id": "/schemas/ids/1",
    "broker": "/brokers/1",
}
"""Each page by a name, as it is of this shop."""
CUSTOMERS: Final = ("Ada", "Grace", "Barbara", "Radia")
ORDERS: Final = 120
READINGS: Final = 6000
SEGMENT_BYTES: Final = 1 << 20
WAIT_S: Final = 30
LONGEST_TRANSACTION_MS: Final = 900_000
"""Else it ends before a busy machine has shown all pages."""
ORDER: Final = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "order", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "total", "type": "double"},
    ],
}
LATER_ORDER: Final = {
    **ORDER,
    "fields": [*ORDER["fields"], {"name": "coupon", "type": "string", "default": ""}],
}


class Shop(NamedTuple):
    """Where its brokers and its registry are."""

    bootstrap: str
    registry: RegistryServer


@contextmanager
def open_shop() -> Iterator[Shop]:
    """It is there meanwhile."""
    with Broker(SETTINGS) as broker, run_registry() as registry:
        registry.register("orders-value", ORDER)
        registry.register("orders-value", LATER_ORDER)
        with Client(broker.bootstrap) as client:
            kept = {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": str(24 * 3600 * 1000)}
            create_topics(
                client,
                [
                    NewTopic("orders", 3, 1),
                    NewTopic("payments", 6, 1),
                    NewTopic("readings", 1, 1, settings=kept),
                ],
            )
            write_orders(broker.bootstrap)
            write_readings(broker.bootstrap)
            run_pipeline(client)
            let_users_in(client)
        # The producer is kept: a new one of the same id would end its transaction.
        _begun = begin_transaction(broker.bootstrap)
        yield Shop(broker.bootstrap, registry)


def write_orders(bootstrap: str) -> None:
    """Two topics; `shipping` has read all orders, `billing` some of them."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "shop"})
    for number in range(ORDERS):
        name = CUSTOMERS[number % len(CUSTOMERS)]
        value = json.dumps({"order": number, "customer": name, "total": round(number * 1.37, 2)})
        producer.produce("orders", value, name, partition=number % 3, headers=[("source", b"web")])
        producer.produce("payments", value, name)
    producer.flush()
    for group, read in (("shipping", 40), ("billing", 25)):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        offsets = [PartitionAt("orders", partition, read) for partition in range(3)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()


def write_readings(bootstrap: str) -> None:
    """Several segments, of the last hours."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "sensors"})
    begin_ms = int(time.time() * 1000) - 20 * 3600 * 1000
    for number in range(READINGS):
        value = f"{number % 97 / 7:.3f} °C ".encode() * 60
        producer.produce("readings", value, timestamp=begin_ms + number * 12_000)
        if number % 500 == 0:
            producer.flush()
    producer.flush()


def run_pipeline(client: Client) -> None:
    """As a pipeline on Spark commits it."""
    now_ms = int(time.time() * 1000)
    run = Run(
        id="9f2c41d0",
        state="running",
        host="etl-3",
        pid=4711,
        since_ms=now_ms - 60_000,
        seen_ms=now_ms,
        every_s=60,
        batch_at_ms=now_ms,
        batch_ms=410,
        rows=117,
        rejected=3,
    )
    lake = Destination("delta", "/lake/orders", rows="upsert", called="Delta")
    metadata = OffsetMetadata("orders to the lake", "id-1", 7, "/lake/orders", 9, run, lake)
    rejected = RejectedOffsets((RejectedRange(2, 5, "no field 'total'"),), "orders_rejected")
    offsets = {TopicPartition("orders", number): 38 for number in range(3)}
    said = dict.fromkeys(offsets, metadata.text())
    said[TopicPartition("orders", 1)] = replace(metadata, rejected=rejected).text()
    commit_offsets(client, "lake", offsets, said)


def let_users_in(client: Client) -> None:
    """A user who may read the orders, with a quota."""
    set_password(client, "ada", "SCRAM-SHA-512", "correct horse", 4096)
    orders = Pattern(Resource.TOPIC, "orders", PatternType.LITERAL)
    billing = Pattern(Resource.GROUP, "billing", PatternType.LITERAL)
    ada = Entry("User:ada", "*", Operation.READ, Permission.ALLOW)
    create_acls(client, [Acl(orders, ada), Acl(billing, ada)])
    alter_quotas(client, Entity(user="ada"), {Kind.FETCH: 10_000_000.0})


def begin_transaction(bootstrap: str) -> Producer:
    """One that is open."""
    settings = {"transactional.id": "till-1", "transaction.timeout.ms": LONGEST_TRANSACTION_MS}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce("payments", b"{}", b"Ada", partition=0)
    producer.flush()
    return producer
