"""A disk that takes no more under one of three brokers. The limit of file sizes stands in for it:
the system refuses the write in the same way, and no disk must be made for it."""

from __future__ import annotations

import resource
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Cluster

WITHIN_S = 60
MAX_BYTES = 256 * 1024
VALUE = b"x" * 1000
ONE_OFFSETS_PARTITION = {"offsets.topic.num.partitions": "1"}
METADATA = "m" * 4000
ELSEWHERE = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
)
PRODUCER: dict[str, Any] = {"enable.idempotence": True, "batch.size": 20_000}


def limit(cluster: Cluster, broker_id: int) -> None:
    process = cluster.brokers[broker_id].process
    assert process is not None
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (MAX_BYTES, MAX_BYTES))


def create(cluster: Cluster, topic: str, replicas: list[int]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    made = admin.create_topics([NewTopic(topic, 1, replica_assignment=[replicas])])
    made[topic].result(WITHIN_S)
    cluster.wait_in_sync(topic)


def produced(cluster: Cluster, topic: str, records: int, **config: Any) -> tuple[list[int], int]:
    """The offsets that were acknowledged, and how many records were not."""
    offsets: list[int] = []
    failed = 0

    def told(error: Any, message: Any) -> None:
        nonlocal failed
        if error is None:
            offsets.append(message.offset())
        else:
            failed += 1

    producer = Producer({**PRODUCER, "bootstrap.servers": cluster.bootstrap, **config})
    for number in range(records):
        producer.produce(topic, VALUE + str(number).encode(), partition=0, on_delivery=told)
        producer.poll(0)
    assert producer.flush(WITHIN_S) == 0
    return offsets, failed


def read(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        found: list[bytes] = []
        while len(found) < count and (batch := consumer.consume(count, WITHIN_S / 2)):
            found += [each.value() for each in batch if each.error() is None]
        return found
    finally:
        consumer.close()


def check_ended(cluster: Cluster, broker_id: int) -> None:
    """It ended by itself and closed its session, so others do not wait for that to expire."""
    broker = cluster.brokers[broker_id]
    assert broker.process is not None
    assert broker.process.wait(WITHIN_S) == 1
    last = broker.said().splitlines()[-1]
    assert last.startswith("ottla serve: cannot write ")
    assert last.endswith("this broker stops so that others can take over")
    assert "Traceback" not in broker.said()
    assert broker_id not in cluster.state.live_brokers()


def test_leadership_goes_elsewhere_and_nothing_is_lost() -> None:
    with Cluster(brokers=3, proxies=False) as cluster:
        create(cluster, "flights", [1, 2, 3])
        limit(cluster, 1)
        offsets, failed = produced(cluster, "flights", 1000)
        assert failed == 0
        assert sorted(offsets) == list(range(1000))
        assert cluster.leader("flights") == 2
        check_ended(cluster, 1)
        # With room again it comes back, and copies what it missed.
        cluster.start(1)
        cluster.wait_in_sync("flights")
        assert len(set(read(cluster, "flights", 1000))) == 1000


def test_a_follower_leaves_and_the_leader_goes_on() -> None:
    with Cluster(brokers=3, proxies=False) as cluster:
        create(cluster, "flights", [1, 2, 3])
        limit(cluster, 2)
        offsets, failed = produced(cluster, "flights", 1000)
        assert failed == 0
        assert sorted(offsets) == list(range(1000))
        check_ended(cluster, 2)
        assert cluster.leader("flights") == 1
        cluster.start(2)
        cluster.wait_in_sync("flights")


def test_a_group_finds_its_coordinator_elsewhere_and_loses_no_commit() -> None:
    with Cluster(brokers=3, proxies=False, config=ONE_OFFSETS_PARTITION) as cluster:
        create(cluster, "flights", [1, 2, 3])
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
        try:
            commit(consumer, 1)
            coordinator = cluster.leader("__consumer_offsets")
            limit(cluster, coordinator)
            for offset in range(2, 101):
                commit(consumer, offset)
            check_ended(cluster, coordinator)
            assert cluster.leader("__consumer_offsets") != coordinator
            (found,) = consumer.committed([TopicPartition("flights", 0)], WITHIN_S)
            assert (found.offset, found.metadata) == (100, METADATA)
        finally:
            consumer.close()


def commit(consumer: Consumer, offset: int) -> None:
    """Asks again, as consumers do, where the coordinator is about to be another."""
    until = time.monotonic() + WITHIN_S
    while True:
        try:
            wanted = TopicPartition("flights", 0, offset, metadata=METADATA)
            (told,) = consumer.commit(offsets=[wanted], asynchronous=False)
            assert told.error is None
            return
        except KafkaException as refused:
            if refused.args[0].code() not in ELSEWHERE or time.monotonic() > until:
                raise
            time.sleep(0.05)


def test_where_nobody_else_could_lead_what_is_there_is_read_on() -> None:
    with Cluster(brokers=1, proxies=False) as cluster:
        create(cluster, "flights", [1])
        limit(cluster, 1)
        offsets, failed = produced(cluster, "flights", 500, **{"message.timeout.ms": 3000})
        assert failed > 0
        assert offsets
        broker = cluster.brokers[1]
        assert broker.running
        assert "cannot write flights-0, which no other broker can lead" in broker.said()
        assert len(read(cluster, "flights", len(offsets))) == len(offsets)
