"""Replicas move to another broker under load, and nobody notices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from tests.system.cluster_load import QUICK, TOPIC, WAIT_S, load_on, wait_for

from faults import replicas
from ottla.testing import Cluster

FOLLOWED, CANCELLED, LED = (TopicPartition(TOPIC, index) for index in range(3))


@contextmanager
def reassigning(cluster: Cluster) -> Iterator[Any]:
    """kafka-python's admin client: librdkafka has no call for reassignments."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
    try:
        yield admin
    finally:
        admin.close()


def coordinator(cluster: Cluster) -> int:
    """Of all groups: asked for, its topic is made."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "first"})
    try:
        consumer.committed([Place(TOPIC, 0)], timeout=WAIT_S)
    finally:
        consumer.close()
    cluster.wait_in_sync("__consumer_offsets")
    return cluster.leader("__consumer_offsets")


def test_replicas_move_under_load(tmp_path: Path) -> None:
    """To a fourth broker, which cannot copy at first: the moves are listed, and one is cancelled.
    Then it copies, and the others are completed."""
    settings = {**QUICK, "offsets.topic.num.partitions": 1}
    with Cluster(4, settings, data=tmp_path / "cluster") as cluster:
        busy = {cluster.controller(), coordinator(cluster)}
        new = next(each for each in cluster.brokers if each not in busy)
        a, b, c = (each for each in cluster.brokers if each != new)
        assignment = [[a, b, c], [b, c, a], [c, a, b]]
        with (
            load_on(cluster, tmp_path, assignment=assignment) as load,
            reassigning(cluster) as admin,
        ):
            cluster.cut_off(new)
            # A follower leaves, then twice a leader.
            targets = {FOLLOWED: [a, b, new], CANCELLED: [new, c, a], LED: [new, a, b]}
            told = admin.alter_partition_reassignments(targets)
            assert told == dict.fromkeys(targets)
            listed = admin.list_partition_reassignments()
            assert {
                place: (each["adding_replicas"], each["removing_replicas"])
                for place, each in listed.items()
            } == {FOLLOWED: ([new], [c]), CANCELLED: ([new], [b]), LED: ([new], [c])}
            load.wait_progress()
            assert admin.list_partition_reassignments() == listed
            assert admin.alter_partition_reassignments({CANCELLED: None}) == {CANCELLED: None}
            assert admin.list_partition_reassignments().keys() == {FOLLOWED, LED}
            load.wait_progress()
            cluster.heal()
            wait_for("the moves to end", lambda: not admin.list_partition_reassignments())
            # What is cancelled keeps the order that it had meanwhile (Kafka's
            # PartitionReassignmentRevert).
            placed = {0: targets[FOLLOWED], 1: [c, a, b], 2: targets[LED]}
            assert cluster.state.replicas(TOPIC) == placed
            cluster.wait_in_sync(TOPIC)
            load.wait_progress()
            assert load.told_errors() == []
        for number, broker in cluster.brokers.items():
            cluster.stop(number)
            folders = {folder.name for folder in broker.data.glob(f"{TOPIC}-[0-9]")}
            held = {f"{TOPIC}-{index}" for index, them in placed.items() if number in them}
            assert folders == held
        for index, them in placed.items():
            folders_of = [cluster.brokers[each].data for each in them]
            assert replicas.compare(TOPIC, index, folders_of) == []
            assert replicas.high_watermark(folders_of[0], TOPIC, index) > 0
