"""Transactions over brokers that fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.system.cluster_load import QUICK, wait_for
from tests.system.test_transactions import WAIT_S, end_offset, read, transactional, write

from ottla.client.admin.asked_journeys import asked_journey
from ottla.shards.partitioning import partition_for
from ottla.testing import Cluster

STATE = "__transaction_state"
SETTINGS = {
    **QUICK,
    "transaction.state.log.num.partitions": 3,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}


def create(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    (future,) = admin.create_topics([NewTopic(topic, 1, 3)]).values()
    future.result(WAIT_S)


def coordinator_of(cluster: Cluster, transactional_id: str) -> int:
    return cluster.leader(STATE, partition_for(transactional_id, 3))


def id_of_another(cluster: Cluster, broker: int) -> str:
    """A transactional id that this broker does not coordinate."""
    names = (f"x-{number}" for number in range(50))
    return next(name for name in names if coordinator_of(cluster, name) != broker)


@pytest.mark.full
def test_the_next_coordinator_writes_the_markers(tmp_path: Path) -> None:
    """The coordinator cannot reach the partition's leader, decides, and dies."""
    with Cluster(3, SETTINGS, data=tmp_path / "cluster") as cluster:
        create(cluster, "t")
        write(transactional(cluster, "first"), "t", "begin", commits=True)
        leader = cluster.leader("t")
        transactional_id = id_of_another(cluster, leader)
        coordinator = coordinator_of(cluster, transactional_id)
        producer = transactional(cluster, transactional_id)
        producer.begin_transaction()
        producer.produce("t", "kept")
        assert producer.flush(WAIT_S) == 0
        cluster.cut(coordinator, leader)
        producer.commit_transaction(WAIT_S)
        assert end_offset(cluster, "t", "read_committed") == 2
        cluster.kill(coordinator)
        cluster.heal()
        assert read(cluster, "t", 2) == ["begin", "kept"]


@pytest.mark.full
def test_the_leader_of_an_open_transaction_dies(tmp_path: Path) -> None:
    with Cluster(3, SETTINGS, data=tmp_path / "cluster") as cluster:
        create(cluster, "t")
        write(transactional(cluster, "first"), "t", "begin", commits=True)
        leader = cluster.leader("t")
        transactional_id = id_of_another(cluster, leader)
        producer = transactional(cluster, transactional_id)
        producer.begin_transaction()
        producer.produce("t", "one")
        assert producer.flush(WAIT_S) == 0
        asked = {"journey": 1, "topic": "t", "partition": 0, "offset": 2}
        held_by = asked_journey(cluster.bootstrap, asked)["read_committed"]["held_by"]
        assert held_by["coordinator"]["broker"] == coordinator_of(cluster, transactional_id)
        assert held_by["coordinator"]["transactional_id"] == transactional_id
        cluster.kill(leader)
        producer.produce("t", "two")
        assert producer.flush(WAIT_S) == 0
        producer.commit_transaction(WAIT_S)
        assert read(cluster, "t", 3) == ["begin", "one", "two"]


@pytest.mark.full
def test_a_producer_and_its_coordinator_die(tmp_path: Path) -> None:
    """The open transaction is aborted once its time is over."""
    with Cluster(3, SETTINGS, data=tmp_path / "cluster") as cluster:
        create(cluster, "t")
        write(transactional(cluster, "first"), "t", "begin", commits=True)
        leader = cluster.leader("t")
        transactional_id = id_of_another(cluster, leader)
        producer: Any = transactional(
            cluster, transactional_id, **{"transaction.timeout.ms": 2_000}
        )
        producer.begin_transaction()
        producer.produce("t", "lost")
        assert producer.flush(WAIT_S) == 0
        cluster.kill(coordinator_of(cluster, transactional_id))
        wait_for(
            "the abort",
            lambda: (
                end_offset(cluster, "t", "read_committed")
                == end_offset(cluster, "t", "read_uncommitted")
            ),
            WAIT_S,
        )
        write(transactional(cluster, "last"), "t", "end", commits=True)
        assert read(cluster, "t", 2) == ["begin", "end"]
