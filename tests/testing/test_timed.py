"""Time passes for a broker that restarts, and for all brokers of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from ottla.testing import Broker, Cluster, KitError

pytestmark = pytest.mark.full  # starts processes, and ZooKeeper

HOUR_MS = 3_600_000
OF_THREE = pytest.mark.ottla(
    brokers=3,
    config={"min.insync.replicas": 2, "group.min.session.timeout.ms": 1000},
    shared=True,
)


SLACK_MS = 1_000
"""More than a rounding of the two clocks; less than any time that passes here."""


def machine_ms() -> int:
    return time.time_ns() // 1_000_000 - SLACK_MS


def leaders(cluster: Cluster) -> dict[tuple[str, int], tuple[int, int]]:
    """Leader and leader epoch of every partition."""
    return {
        (topic, index): (state["leader"], state["leader_epoch"])
        for topic in cluster.state.topics()
        for index in cluster.state.replicas(topic) or {}
        if (state := cluster.state.partition(topic, index)) is not None
    }


def stored(cluster: Cluster, topic: str) -> dict[int, list[str]]:
    """The segments on each broker's disk; those that are being removed have another ending."""
    return {
        number: sorted(each.name for each in broker.data.glob(f"{topic}-0/*.log"))
        for number, broker in cluster.brokers.items()
    }


def until(what: str, check: Callable[[], bool], timeout_s: float = 60) -> None:
    end = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < end, f"waited {timeout_s} s: {what}"


def test_a_restarted_broker_keeps_its_time() -> None:
    with Broker() as broker:
        topic = broker.create_topic(config={"retention.ms": 24 * HOUR_MS})
        broker.advance(hours=20)
        topic.produce("new", timestamp_ms=broker.now_ms())
        broker.process.stop()
        broker.process.start()
        assert broker.now_ms() >= machine_ms() + 20 * HOUR_MS
        broker.advance(hours=5)
        topic.assert_records(["new"])
        assert broker.advance(hours=20) >= machine_ms() + 45 * HOUR_MS
        topic.assert_records([])


@OF_THREE
def test_retention_removes_segments_on_every_replica(ottla_brokers: Cluster) -> None:
    cluster = ottla_brokers
    topic = cluster.create_topic(config={"retention.ms": 24 * HOUR_MS})
    topic.produce("old", timestamp_ms=cluster.now_ms())
    cluster.wait_in_sync()
    before = leaders(cluster)
    first = stored(cluster, topic.name)
    assert [len(names) for names in first.values()] == [1, 1, 1]

    cluster.advance(hours=23)
    topic.assert_records(["old"])
    assert cluster.advance(hours=2) >= machine_ms() + 25 * HOUR_MS
    topic.assert_records([])
    cluster.advance(minutes=10)  # followers learn the leader's log start, and delete files

    now = stored(cluster, topic.name)
    assert [len(names) for names in now.values()] == [1, 1, 1]
    assert not {name for names in first.values() for name in names} & {*now[1], *now[2], *now[3]}
    topic.produce("new", timestamp_ms=cluster.now_ms())
    topic.assert_records([{"value": "new", "offset": 1}])
    assert leaders(cluster) == before
    assert cluster.state.live_brokers() == [1, 2, 3]


@OF_THREE
def test_a_session_of_a_group_times_out(ottla_brokers: Cluster) -> None:
    cluster = ottla_brokers
    topic = cluster.create_topic()
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": topic.name,
            "heartbeat.interval.ms": 60,
            "auto.offset.reset": "earliest",
        }
    )
    lost: list[str] = []
    consumer.subscribe(
        [topic.name], on_lost=lambda _, places: lost.extend(each.topic for each in places)
    )

    def is_assigned() -> bool:
        consumer.poll(0.05)
        return bool(consumer.assignment())

    def has_lost() -> bool:
        consumer.poll(0.05)
        return bool(lost)

    try:
        until("an assignment", is_assigned)
        before = leaders(cluster)
        cluster.advance(minutes=10)
        until("the loss of the assignment", has_lost)
        assert lost == [topic.name]
        until("a new assignment", is_assigned)
        topic.produce("after", timestamp_ms=cluster.now_ms())
        message = consumer.poll(30)
        assert message is not None
        assert message.value() == b"after"
        assert leaders(cluster) == before
    finally:
        consumer.close()


@OF_THREE
def test_a_transaction_times_out(ottla_brokers: Cluster) -> None:
    cluster = ottla_brokers
    topic = cluster.create_topic()
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": topic.name,
            "transaction.timeout.ms": 60_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic.name, b"never")
    assert producer.flush(30) == 0
    topic.produce("after", timestamp_ms=cluster.now_ms())
    topic.assert_records([], timeout_s=0.1)  # the transaction is open
    before = leaders(cluster)
    cluster.advance(minutes=2)
    topic.assert_records(["after"])
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)
    assert leaders(cluster) == before


def test_a_broker_that_was_down_gets_the_time_when_it_starts() -> None:
    with Cluster(3, control=True) as cluster:
        topic = cluster.create_topic(config={"retention.ms": 24 * HOUR_MS})
        topic.produce("old", timestamp_ms=cluster.now_ms())
        cluster.pause(3)
        with pytest.raises(KitError, match="broker 3 is paused: resume it before you advance"):
            cluster.advance(hours=1)
        cluster.resume(3)
        cluster.stop(3)
        cluster.advance(hours=25)
        cluster.start(3)
        times_ms = [each.ask("now_ms") for each in cluster.controls()]
        assert len(times_ms) == 3
        assert min(times_ms) >= machine_ms() + 25 * HOUR_MS
        cluster.wait_in_sync()
        topic.assert_records([])
        topic.produce("new", timestamp_ms=cluster.now_ms())
        cluster.wait_in_sync(topic.name)


def test_a_replica_that_is_cut_off_leaves_the_in_sync_set() -> None:
    with Cluster(3, control=True) as cluster:
        topic = cluster.create_topic()
        leader = cluster.leader(topic.name)
        follower = next(
            each for each in cluster.brokers if each not in (leader, cluster.controller())
        )
        cluster.cut_off(follower)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": 1})
        producer.produce(topic.name, b"a")
        assert producer.flush(30) == 0
        cluster.advance(minutes=2)
        cluster.wait_for(
            "the follower to fall out",
            lambda: (
                follower not in (cluster.state.partition(topic.name, 0) or {}).get("isr", ())
                or None
            ),
        )
        cluster.heal()
        cluster.wait_in_sync(topic.name)


def test_nothing_to_advance(ottla_cluster: Callable[..., Cluster]) -> None:
    cluster = ottla_cluster(1)
    with pytest.raises(KitError, match="needs brokers that can be controlled"):
        cluster.advance(hours=1)
    with pytest.raises(KitError, match="time only goes forward"):
        cluster.advance(hours=-1)
