"""A copy of a broker's folder is started: a restored backup, a cloned machine. One id, one broker.

Kafka's second broker does not start (KafkaZkClient.CheckedEphemeral.getAfterNodeExists: the node of
another session is never one's own).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.system.cluster_load import QUICK, create, wait_for
from tests.system.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.testing import BrokerProcess, Cluster
from ottla.testing.ports import HOST, free_ports

PRODUCE = 0
ALONE = "alone"


def append(broker: BrokerProcess) -> ErrorCode:
    """One record with acks=all, sent to this broker only."""
    with Wire(broker.bootstrap) as wire:
        build = wire.request(PRODUCE, 9)
        batch = build_batch([Record(0, 1_000, None, b"value")])
        data = build.PartitionProduceData(index=0, records=batch)
        named = build.TopicProduceData(name=ALONE, partition_data=(data,))
        answer = wire.ask(
            build.ProduceRequest(
                acks=-1, timeout=10_000, topic_data=(named,), transactional_id=None
            )
        )
    code: ErrorCode = answer.responses[0].partition_responses[0].error_code
    return code


def clone_of(cluster: Cluster, number: int, folder: Path) -> BrokerProcess:
    """A broker on a copy of that broker's folder, with other ports; not started."""
    shutil.copytree(cluster.brokers[number].data, folder)
    options = ["--id", str(number), "--zookeeper", cluster.zookeeper]
    for name, value in QUICK.items():
        options += ["-c", f"{name}={value}"]
    return BrokerProcess(folder, options, f"{HOST}:{free_ports(1)[0]}")


def exit_code(broker: BrokerProcess) -> int:
    process = broker.process
    assert process is not None
    wait_for("the broker to end", lambda: process.poll() is not None)
    return int(process.returncode)


@contextmanager
def open_cluster(tmp_path: Path) -> Iterator[Cluster]:
    settings = {**QUICK, "min.insync.replicas": 1}
    with Cluster(2, settings, data=tmp_path / "cluster") as cluster:
        create(cluster, ALONE, replica_assignment=[[2]])
        yield cluster


def test_a_copy_of_a_running_brokers_folder_does_not_start(tmp_path: Path) -> None:
    with open_cluster(tmp_path) as cluster:
        original, clone = cluster.brokers[2], clone_of(cluster, 2, tmp_path / "copy")
        session = cluster.state.session_of(2)
        assert append(original) is ErrorCode.none
        clone.launch()
        assert exit_code(clone) == 1
        assert append(original) is ErrorCode.none
        assert cluster.state.session_of(2) == session
        line = clone.said().splitlines()[-1]
        assert line.startswith("ottla serve: node.id=2: "), line
        assert "a copy of this data folder" in line


@pytest.mark.parametrize("reaches", ["the controller", "nobody"])
def test_the_former_broker_stops_when_a_copy_has_its_id(tmp_path: Path, reaches: str) -> None:
    """The copy may register when the session of the original is over; that one was cut off."""
    with open_cluster(tmp_path) as cluster:
        original, clone = cluster.brokers[2], clone_of(cluster, 2, tmp_path / "copy")
        if cluster.controller() != 1:
            cluster.expire_session(2)
            wait_for("broker 1 to be the controller", lambda: cluster.controller() == 1)
            cluster.wait_registered([1, 2])
        cluster.cut_zookeeper(2)
        if reaches == "nobody":
            cluster.cut(1, 2)
        try:
            clone.start()
            wait_for("the copy to lead", lambda: append(clone) is ErrorCode.none)
            if reaches == "nobody":
                assert original.running
                cluster.heal()
            assert exit_code(original) == 1
            line = original.said().splitlines()[-1]
            assert line.startswith("ottla serve: node.id=2: "), line
            assert "a copy of this data folder" in line
            assert append(clone) is ErrorCode.none
        finally:
            clone.end()


def test_a_killed_broker_takes_its_id_back_at_once(tmp_path: Path) -> None:
    """The lock of the same folder proves that the former process is gone."""
    with open_cluster(tmp_path) as cluster:
        session = cluster.state.session_of(2)
        cluster.brokers[1].pause()  # nobody deletes the registration of the killed broker
        try:
            cluster.kill(2)
            assert cluster.state.session_of(2) == session
            cluster.launch(2)
            wait_for("a new session", lambda: cluster.state.session_of(2) not in (None, session))
        finally:
            cluster.brokers[1].resume()
        cluster.brokers[2].wait_ready()
        assert append(cluster.brokers[2]) is ErrorCode.none
        assert "is taken by" not in cluster.brokers[2].said()
