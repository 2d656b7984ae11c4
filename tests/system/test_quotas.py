"""Quotas at a real broker, by librdkafka and by plain connections, and in a cluster of three."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from components.apache_kafka import KafkaJars
from confluent_kafka.admin import AdminClient
from tests.system.wire import Wire

from components import fixture
from ottla.protocol.errors import ErrorCode
from ottla.testing import BrokerProcess, Cluster
from ottla.testing.ports import HOST, free_ports

kafka_jars = fixture.kafka_jars

WAIT_S = 30
DESCRIBE, ALTER, CREATE_TOPICS, CREATE_PARTITIONS, DELETE_TOPICS = 48, 49, 19, 37, 20
API_VERSIONS, METADATA = 18, 3


def alter(bootstrap: str, names: dict[str, str | None], **values: float | None) -> None:
    """Sets quotas; None removes one."""
    with Wire(bootstrap) as wire:
        build = wire.request(ALTER, 1)
        entity = tuple(
            build.EntityData(entity_type=type, entity_name=name) for type, name in names.items()
        )
        ops = tuple(
            build.OpData(key=key, value=value or 0, remove=value is None)
            for key, value in values.items()
        )
        entry = build.EntryData(entity=entity, ops=ops)
        answer = wire.ask(build.AlterClientQuotasRequest(entries=(entry,), validate_only=False))
        assert [each.error_code for each in answer.entries] == [ErrorCode.none]


def produce(settings: dict[str, Any], topic: str, *values: bytes) -> list[int]:
    """Acknowledged one after the other; the throttle times that the broker sent, in ms."""
    throttled: list[int] = []
    producer = confluent_kafka.Producer(
        settings | {"throttle_cb": lambda event: throttled.append(int(event.throttle_time * 1000))}
    )
    for value in values:
        producer.produce(topic, value)
        assert producer.flush(WAIT_S) == 0
    until_s = time.monotonic() + 2
    while not throttled and time.monotonic() < until_s:
        producer.poll(0.1)
    return throttled


def test_a_producer_is_answered_at_once_and_muted_then(
    new_broker: Callable[..., BrokerProcess],
) -> None:
    broker = new_broker()
    bootstrap = broker.bootstrap
    alter(bootstrap, {"client-id": "slow"}, producer_byte_rate=1)
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 0}
    # Of one byte a second: the one record is acknowledged, and the next would be minutes later.
    (throttle_ms, *_) = produce(settings | {"client.id": "slow"}, "t", bytes(200))
    assert throttle_ms > 100_000
    assert produce(settings | {"client.id": "fast"}, "t", *[bytes(200)] * 20) == []
    with Wire(bootstrap) as wire:
        request = wire.request(API_VERSIONS, 0).ApiVersionsRequest()
        assert wire.ask(request).error_code is ErrorCode.none
    broker.stop()


def test_who_does_not_wait_is_not_read(new_broker: Callable[..., BrokerProcess]) -> None:
    bootstrap = new_broker().bootstrap
    alter(bootstrap, {"user": None}, request_percentage=0.0001)
    with Wire(bootstrap) as wire:
        build = wire.request(METADATA, 12)
        request = build.MetadataRequest(topics=None, allow_auto_topic_creation=False)
        began_s = time.monotonic()
        assert wire.ask(request).throttle_time == 1_000  # a window at most
        assert wire.ask(request).throttle_time == 1_000
        assert time.monotonic() - began_s >= 1


def test_a_consumer_gets_what_its_quota_allows(new_broker: Callable[..., BrokerProcess]) -> None:
    bootstrap = new_broker().bootstrap
    settings = {"bootstrap.servers": bootstrap}
    values = [b"%d" % number * 1000 for number in range(40)]
    produce(settings | {"batch.num.messages": 1}, "t", *values)
    alter(bootstrap, {"client-id": None}, consumer_byte_rate=20_000)
    throttled: list[float] = []
    consumer = confluent_kafka.Consumer(
        settings
        | {
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "fetch.max.bytes": 8_000,
            "message.max.bytes": 8_000,
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
    )
    consumer.subscribe(["t"])
    found: list[bytes] = []
    until_s = time.monotonic() + WAIT_S
    while len(found) < len(values) and time.monotonic() < until_s:
        found += [message.value() for message in consumer.consume(100, 0.5)]
    consumer.close()
    assert found == values


@pytest.mark.parametrize(("version", "is_strict"), [(5, False), (7, True)])
def test_partitions_are_created_no_faster(
    new_broker: Callable[..., BrokerProcess], version: int, is_strict: bool
) -> None:
    bootstrap = new_broker().bootstrap
    alter(bootstrap, {"user": "ANONYMOUS"}, controller_mutation_rate=1)
    with Wire(bootstrap) as wire:
        build = wire.request(CREATE_TOPICS, version)

        def topic(name: str, partitions: int) -> Any:
            return build.CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1, assignments=(),
                configs=(),
            )  # fmt: skip

        topics = (topic("a", 14), topic("b", 1))
        answer = wire.ask(build.CreateTopicsRequest(topics=topics, timeout=30_000))
        codes = {each.name: each.error_code for each in answer.topics}
        second = ErrorCode.throttling_quota_exceeded if is_strict else ErrorCode.none
        assert codes == {"a": ErrorCode.none, "b": second}
        assert 0 < answer.throttle_time <= 4_000
    with Wire(bootstrap) as wire:
        build = wire.request(DELETE_TOPICS, 6)
        gone = build.DeleteTopicState(name="a")
        answer = wire.ask(build.DeleteTopicsRequest(topics=(gone,), timeout=30_000))
        (deleted,) = answer.responses
        assert deleted.error_code is ErrorCode.throttling_quota_exceeded
    with Wire(bootstrap) as wire:
        build = wire.request(CREATE_PARTITIONS, 3)
        more = build.CreatePartitionsTopic(name="a", count=15, assignments=None)
        answer = wire.ask(
            build.CreatePartitionsRequest(topics=(more,), timeout=30_000, validate_only=False)
        )
        (refused,) = answer.results
        assert refused.error_code is ErrorCode.throttling_quota_exceeded


def test_an_address_connects_no_faster(new_broker: Callable[..., BrokerProcess]) -> None:
    bootstrap = new_broker().bootstrap
    alter(bootstrap, {"ip": HOST}, connection_creation_rate=1)
    opened = [Wire(bootstrap) for _ in range(20)]
    served = 0
    for wire in opened:
        try:
            wire.ask(wire.request(API_VERSIONS, 0).ApiVersionsRequest())
        except (EOFError, ConnectionResetError, BrokenPipeError):
            continue
        served += 1
    assert 5 <= served <= 15
    for wire in opened:
        wire.close()


def test_a_user_is_the_one_who_logged_in(new_broker: Callable[..., BrokerProcess]) -> None:
    plain, sasl = free_ports(2)
    listeners = f"PLAINTEXT://{HOST}:{plain},SASL_PLAINTEXT://{HOST}:{sasl}"
    settings = {
        "listeners": listeners,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'user_alice="secret" user_bob="bobs";'
        ),
    }
    new_broker(*[word for pair in settings.items() for word in ("-c", "=".join(pair))])
    alter(f"{HOST}:{plain}", {"user": "alice"}, producer_byte_rate=1)

    def of(user: str, password: str) -> list[int]:
        return produce(
            {
                "bootstrap.servers": f"{HOST}:{sasl}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": user,
                "sasl.password": password,
            },
            "t",
            bytes(200),
        )

    assert of("bob", "bobs") == []
    assert of("alice", "secret")[0] > 100_000
    assert produce({"bootstrap.servers": f"{HOST}:{plain}"}, "t", bytes(200)) == []


def is_throttled(broker: str) -> bool:
    with Wire(broker) as wire:
        build = wire.request(METADATA, 12)
        request = build.MetadataRequest(topics=None, allow_auto_topic_creation=False)
        return bool(wire.ask(request).throttle_time > 0)


def test_every_broker_of_a_cluster_knows_a_quota() -> None:
    with Cluster(brokers=3, proxies=False) as cluster:
        brokers = cluster.bootstrap.split(",")
        AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=WAIT_S)
        alter(brokers[0], {"user": "ANONYMOUS"}, request_percentage=0.0001)
        for broker in brokers:
            until_s = time.monotonic() + WAIT_S
            while not is_throttled(broker) and time.monotonic() < until_s:
                time.sleep(0.05)
            assert is_throttled(broker)
        # Brokers have no quota: the cluster replicates as before.
        alter(brokers[1], {"user": "ANONYMOUS"}, request_percentage=None)
        alter(brokers[2], {"user": "ANONYMOUS"}, consumer_byte_rate=1, controller_mutation_rate=1)
        produce({"bootstrap.servers": cluster.bootstrap, "acks": "all"}, "t", *[bytes(9000)] * 3)
        codes: list[ErrorCode] = []
        for broker in brokers:
            with Wire(broker) as wire:
                build = wire.request(CREATE_TOPICS, 7)
                topic = build.CreatableTopic(
                    name=f"t{len(codes)}", num_partitions=20, replication_factor=1,
                    assignments=(), configs=(),
                )  # fmt: skip
                answer = wire.ask(build.CreateTopicsRequest(topics=(topic,), timeout=30_000))
                codes.append(answer.topics[0].error_code)
                if answer.topics[0].error_code is not ErrorCode.none:
                    # The broker that forwarded the request mutes its client.
                    wire.socket.settimeout(0.3)
                    with pytest.raises(socket.timeout):
                        wire.ask(wire.request(API_VERSIONS, 0).ApiVersionsRequest())
        assert codes == [
            ErrorCode.none,
            ErrorCode.throttling_quota_exceeded,
            ErrorCode.throttling_quota_exceeded,
        ]


@pytest.mark.kafka
def test_kafka_configs(kafka_jars: KafkaJars, new_broker: Callable[..., BrokerProcess]) -> None:
    """Apache Kafka's own tool sets, shows and removes quotas."""
    server = ("--bootstrap-server", new_broker().bootstrap)

    def configs(*words: str) -> str:
        return kafka_jars.run("org.apache.kafka.tools.ConfigCommand", *server, *words)

    user = ("--entity-type", "users", "--entity-name", "a/b")
    client = ("--entity-type", "clients", "--entity-name", "c")
    both = ("--entity-type", "users", "--entity-default", *client)
    address = ("--entity-type", "ips", "--entity-default")
    configs("--alter", "--add-config", "producer_byte_rate=9,request_percentage=12.5", *user)
    configs("--alter", "--add-config", "consumer_byte_rate=2048", *both)
    configs("--alter", "--add-config", "connection_creation_rate=100", *address)
    said = configs("--describe", *user)
    assert "'a/b' are producer_byte_rate=9.0, request_percentage=12.5" in said
    assert "client-id 'c' are consumer_byte_rate=2048.0" in configs("--describe", *both)
    assert "connection_creation_rate=100.0" in configs("--describe", *address)
    configs("--alter", "--delete-config", "producer_byte_rate", *user)
    assert "'a/b' are request_percentage=12.5" in configs("--describe", *user)
