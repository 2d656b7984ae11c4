"""Three real brokers: each fault does what it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Cluster, KitError

ANSWER_WITHIN_S = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, racks=["a", "b", "c"]) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("flights", 3, 3)])["flights"].result(ANSWER_WITHIN_S)
        cluster.wait_in_sync("flights")
        yield cluster
    assert not any(broker.running for broker in cluster.brokers.values())


def produced(cluster: Cluster, **settings: Any) -> int:
    """Records that were not acknowledged, of 100."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **settings})
    for number in range(100):
        producer.produce("flights", str(number).encode())
    return int(producer.flush(ANSWER_WITHIN_S))


def test_a_killed_leader_is_followed_by_another_and_comes_back(cluster: Cluster) -> None:
    leader = cluster.leader("flights", 0)
    cluster.kill(leader)
    other = cluster.wait_leader_other_than(leader, "flights", 0)
    assert other != leader
    assert produced(cluster, acks="all") == 0
    cluster.start(leader)
    cluster.wait_in_sync("flights")
    cluster.wait_registered([1, 2, 3])


def test_an_expired_session_is_followed_by_a_new_one(cluster: Cluster) -> None:
    broker = cluster.controller()
    session = cluster.state.session_of(broker)
    cluster.expire_session(broker)
    cluster.wait_for(
        "another session",
        lambda: cluster.state.session_of(broker) not in (None, session) or None,
    )
    cluster.wait_in_sync("flights")


def test_brokers_that_are_cut_from_each_other_agree_after_the_healing(cluster: Cluster) -> None:
    leader = cluster.leader("flights", 0)
    cluster.cut_off(leader)
    assert produced(cluster, acks=1) == 0
    cluster.heal()
    cluster.wait_in_sync("flights")


def test_a_wait_that_fails_shows_why(cluster: Cluster) -> None:
    with pytest.raises(KitError, match="no topic nowhere") as caught:
        cluster.wait_in_sync("nowhere", timeout_s=0.1)
    assert "broker 3 (running) said:" in str(caught.value)
