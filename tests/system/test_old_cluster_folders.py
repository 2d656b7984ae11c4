"""The data folders of a cluster, as an earlier version wrote them, open unchanged.

`cluster_folders_2026_11.tar.gz` was written on 2026-11-22 by the code of commit c175ba1: three
brokers and a real ZooKeeper, whose transaction log is here without its padding. In each of two
rounds an idempotent producer of librdkafka wrote 60 records to the three partitions of `replicated`
(three replicas, zstd), and the group `readers` committed. Before the second round the leader of
`replicated-0` was killed. It was started again, and at last every broker was stopped.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.testing import Cluster

WRITTEN = Path(__file__).with_name("cluster_folders_2026_11.tar.gz")
TOPIC = "replicated"
PARTITIONS = range(3)
ROUNDS = range(2)
FIRST_MS = 1_700_000_000_000
WAIT_S = 30
# Nothing expires, though all of it becomes older.
SETTINGS = {
    "log.retention.ms": -1,
    "offsets.retention.minutes": 2147483647,
    "offsets.topic.num.partitions": 2,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(WRITTEN) as written:
        written.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def cluster(folder: Path) -> Iterator[Cluster]:
    with Cluster(3, SETTINGS, data=folder, proxies=False) as running:
        running.wait_in_sync()
        yield running


def digests(folder: Path) -> dict[str, str]:
    """Of the brokers' logs, and of what says which topic they belong to."""
    files = [*folder.rglob("*.log"), *folder.rglob("partition.metadata")]
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
        if "zookeeper" not in str(path.relative_to(folder))
    }


def test_a_cluster_goes_on_with_the_folders_of_an_earlier_version(
    folder: Path, cluster: Cluster
) -> None:
    before = digests(folder)
    assert len([name for name in before if name.endswith(".log")]) == 12
    settings = {"group.id": "readers", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **settings})
    try:
        partitions = [TopicPartition(TOPIC, index) for index in PARTITIONS]
        found = consumer.committed(partitions, timeout=WAIT_S)
        assert [each.offset for each in found] == [25, 26, 27]
        consumer.assign([TopicPartition(TOPIC, index, 0) for index in PARTITIONS])
        read = consumer.consume(120, WAIT_S)
    finally:
        consumer.close()
    for index in PARTITIONS:
        assert [
            (each.offset(), each.timestamp()[1], each.key(), each.value())
            for each in read
            if each.partition() == index
        ] == [
            (
                20 * number + n // 3,
                FIRST_MS + number * 60_000 + n,
                f"key-{n}".encode(),
                f"{number} {n} {'x' * 50}".encode(),
            )
            for number in ROUNDS
            for n in range(index, 60, 3)
        ]
    for broker in cluster.brokers:
        cluster.stop(broker)
    assert digests(folder) == before
