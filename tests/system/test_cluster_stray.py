"""A stray folder of a broker in a cluster is put back with `ottla log stray adopt --zookeeper`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from tests.system.cluster_load import QUICK, WAIT_S, create, wait_for
from tests.system.test_cluster_clone import ALONE, append

from ottla.protocol.errors import ErrorCode
from ottla.testing import Cluster

RECORDS = 5


def stray(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ottla", "log", "stray", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def end_of(cluster: Cluster) -> int:
    """The end offset of the partition."""
    partition = TopicPartition(ALONE, 0)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "looks"})
    try:
        return int(consumer.get_watermark_offsets(partition, timeout=WAIT_S)[1])
    finally:
        consumer.close()


def test_a_folder_that_was_set_aside_is_put_back(tmp_path: Path) -> None:
    settings = {**QUICK, "min.insync.replicas": 1}
    with Cluster(2, settings, data=tmp_path / "cluster") as cluster:
        number = 3 - cluster.controller()
        create(cluster, ALONE, replica_assignment=[[number]])
        broker = cluster.brokers[number]
        for _ in range(RECORDS):
            assert append(broker) is ErrorCode.none
        cluster.stop(number)
        noted = broker.data / f"{ALONE}-0" / "partition.metadata"
        text = noted.read_text()
        noted.write_text(text.replace(text.split()[-1], "AAAAAAAAAAAAAAAAAAAAAQ"))
        cluster.start(number)
        wait_for("the folder to be set aside", lambda: any(broker.data.glob("*-stray")))
        wait_for("the partition to be led", lambda: end_or_none(cluster) == 0)

        cluster.stop(number)
        (folder,) = broker.data.glob("*-stray")
        told = stray("adopt", str(folder))
        assert told.returncode == 1
        assert "Add --zookeeper HOST:PORT/chroot" in told.stderr
        told = stray("adopt", str(folder), "--zookeeper", cluster.zookeeper)
        assert (told.returncode, told.stderr) == (0, "")
        assert f"{ALONE}-0 has its records again. Start the broker." in told.stdout
        cluster.start(number)
        wait_for("the records to be there", lambda: end_or_none(cluster) == RECORDS)
        assert append(broker) is ErrorCode.none
        assert end_of(cluster) == RECORDS + 1


def end_or_none(cluster: Cluster) -> int | None:
    """The end offset, None while the partition has no leader."""
    from confluent_kafka import KafkaException

    try:
        return end_of(cluster)
    except KafkaException:
        return None
