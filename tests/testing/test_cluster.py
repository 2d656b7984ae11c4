"""Each fault of the test kit on three real brokers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Cluster, KitError
from ottla.testing.broker_metadata import partitions_known_to
from ottla.testing.ports import HOST, free_ports

ANSWER_WITHIN_S = 60
SILENCE_S = 0.5


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # Short, so that the tests do not wait long for them.
    config = {"replica.lag.time.max.ms": 1500, "zookeeper.session.timeout.ms": 2000}
    with Cluster(brokers=3, racks=["a", "b", "c"], config=config) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("flights", 3, 3)])["flights"].result(ANSWER_WITHIN_S)
        cluster.wait_in_sync("flights")
        yield cluster
    assert not any(broker.running for broker in cluster.brokers.values())


def produced(cluster: Cluster, **settings: Any) -> int:
    """Produce 100 records; return how many were not acknowledged."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **settings})
    for number in range(100):
        producer.produce("flights", str(number).encode(), partition=0)
    return int(producer.flush(ANSWER_WITHIN_S))


def test_every_broker_knows_partitions_that_are_in_sync(cluster: Cluster) -> None:
    """A controller writes the tree before it notifies the brokers."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for number in range(10):
        topic = f"known-{number}"
        admin.create_topics([NewTopic(topic, 2, 3)])[topic].result(ANSWER_WITHIN_S)
        cluster.wait_in_sync(topic)
        actual = cluster.state.known(topic)
        assert [each.isr for each in actual.values()] == [{1, 2, 3}] * 2
        for broker in cluster.brokers.values():
            assert partitions_known_to(broker.bootstrap, [topic]) == actual


def test_a_killed_leader_is_replaced_and_restarts(cluster: Cluster) -> None:
    leader = cluster.leader("flights", 0)
    cluster.kill(leader)
    other = cluster.wait_leader_other_than(leader, "flights", 0)
    assert other != leader
    assert produced(cluster, acks="all") == 0
    cluster.start(leader)
    cluster.wait_in_sync("flights")
    cluster.wait_registered([1, 2, 3])


def test_a_broker_replaces_an_expired_session(cluster: Cluster) -> None:
    broker = cluster.controller()
    session = cluster.state.session_of(broker)
    cluster.expire_session(broker)
    cluster.wait_for(
        "another session",
        lambda: cluster.state.session_of(broker) not in (None, session) or None,
    )
    cluster.wait_in_sync("flights")


def test_brokers_catch_up_after_a_cut_is_healed(cluster: Cluster) -> None:
    leader = cluster.leader("flights", 0)
    cluster.cut_off(leader)
    assert produced(cluster, acks=1) == 0
    cluster.heal()
    cluster.wait_in_sync("flights")


def test_two_brokers_cut_from_each_other_reach_the_third(cluster: Cluster) -> None:
    leader = cluster.leader("flights", 0)
    # The leader must reach the controller to change the ISR.
    other, follower = sorted(
        (each for each in cluster.brokers if each != leader),
        key=lambda each: each != cluster.controller(),
    )
    cluster.cut(leader, follower)

    def in_sync() -> set[int]:
        state = cluster.state.partition("flights", 0)
        return set() if state is None else set(state["isr"])

    # A follower that has all records stays in the ISR, even if it does not fetch.
    assert produced(cluster, acks=1) == 0
    cluster.wait_for("the follower to fall out", lambda: follower not in in_sync() or None)
    assert {leader, other} <= in_sync()
    assert produced(cluster, acks="all") == 0
    cluster.heal()
    cluster.wait_in_sync("flights")


def test_a_broker_cut_from_zookeeper_loses_its_registration(cluster: Cluster) -> None:
    cluster.cut_zookeeper(2)
    cluster.wait_registered([1, 3])
    assert cluster.brokers[2].running
    cluster.heal()
    cluster.wait_registered([1, 2, 3])
    cluster.wait_in_sync("flights")


def test_a_paused_broker_accepts_connections_but_does_not_respond(cluster: Cluster) -> None:
    host, _, port = cluster.brokers[1].bootstrap.partition(":")
    cluster.pause(1)
    try:
        with socket.create_connection((host, int(port)), ANSWER_WITHIN_S) as connection:
            # ApiVersions, version 0, without a client id.
            connection.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\7\xff\xff")
            connection.settimeout(SILENCE_S)
            with pytest.raises(TimeoutError):
                connection.recv(1)
            cluster.resume(1)
            connection.settimeout(ANSWER_WITHIN_S)
            answer = connection.recv(8, socket.MSG_WAITALL)
            assert answer[4:] == b"\0\0\0\7"
    finally:
        cluster.resume(1)
    cluster.wait_registered([1, 2, 3])
    cluster.wait_in_sync("flights")


def test_a_stop_moves_leadership_and_a_lost_disk_is_replicated_again(cluster: Cluster) -> None:
    leader = cluster.leader("flights", 1)
    cluster.stop(leader)
    assert cluster.leader("flights", 1) != leader
    cluster.lose_disk(leader)
    assert not cluster.brokers[leader].data.exists()
    cluster.start(leader)
    cluster.wait_in_sync("flights")


def test_unknown_broker_and_member_ids_are_rejected(cluster: Cluster) -> None:
    for fault in (cluster.kill, cluster.pause, cluster.start, cluster.stop, cluster.cut_off):
        with pytest.raises(KitError, match="there is no broker 7; this cluster has 1, 2, 3"):
            fault(7)
    with pytest.raises(KitError, match="there is no broker 0"):
        cluster.cut(1, 0)
    with pytest.raises(KitError, match="there is no member 2; the ensemble has 1 to 1"):
        cluster.kill_zookeeper(2)


def test_a_failed_wait_shows_the_logs(cluster: Cluster) -> None:
    with pytest.raises(KitError, match="no topic nowhere") as caught:
        cluster.wait_in_sync("nowhere", timeout_s=0.1)
    assert "broker 3 (running) said:" in str(caught.value)


def test_a_wait_for_a_leader_names_a_missing_topic_or_partition(cluster: Cluster) -> None:
    with pytest.raises(KitError, match="there is no topic nowhere: create it first"):
        cluster.leader("nowhere", timeout_s=0.1)
    with pytest.raises(KitError, match="flights has no partition 7; it has 3 partitions"):
        cluster.leader("flights", 7, timeout_s=0.1)


def test_new_topics_get_a_replica_on_each_of_three_brokers(cluster: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("by-default", 1)])["by-default"].result(ANSWER_WITHIN_S)
    replicas = cluster.state.replicas("by-default")
    assert replicas is not None
    assert sorted(replicas[0]) == [1, 2, 3]


def test_clients_are_told_the_advertised_port() -> None:
    own, advertised = free_ports(2)
    with Cluster(brokers=1, ports=[own], advertised_ports=[advertised]) as cluster:
        assert cluster.bootstrap == f"{HOST}:{own}"
        told = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(
            timeout=ANSWER_WITHIN_S
        )
        assert [broker.port for broker in told.brokers.values()] == [advertised]
