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
def open_cluster(tmp_path: Path) -> Iterator[tuple[Cluster, int]]:
    """Two brokers, and the number of the one that is not the controller: it leads the topic."""
    settings = {**QUICK, "min.insync.replicas": 1}
    with Cluster(2, settings, data=tmp_path / "cluster") as cluster:
        number = 3 - cluster.controller()
        create(cluster, ALONE, replica_assignment=[[number]])
        yield cluster, number


def test_a_copy_of_a_running_brokers_folder_does_not_start(tmp_path: Path) -> None:
    with open_cluster(tmp_path) as (cluster, number):
        original, clone = cluster.brokers[number], clone_of(cluster, number, tmp_path / "copy")
        session = cluster.state.session_of(number)
        assert append(original) is ErrorCode.none
        clone.launch()
        assert exit_code(clone) == 1
        assert append(original) is ErrorCode.none
        assert cluster.state.session_of(number) == session
        line = clone.said().splitlines()[-1]
        assert line.startswith(f"ottla serve: node.id={number}: "), line
        assert "a copy of this data folder" in line


@pytest.mark.parametrize("reaches", ["the controller", "nobody"])
def test_the_former_broker_stops_when_a_copy_has_its_id(tmp_path: Path, reaches: str) -> None:
    """The copy may register when the session of the original is over; that one was cut off."""
    with open_cluster(tmp_path) as (cluster, number):
        original, clone = cluster.brokers[number], clone_of(cluster, number, tmp_path / "copy")
        cluster.cut_zookeeper(number)
        if reaches == "nobody":
            cluster.cut_off(number)
        try:
            clone.start()
            wait_for("the copy to lead", lambda: append(clone) is ErrorCode.none)
            if reaches == "nobody":
                assert original.running
                cluster.heal()
            assert exit_code(original) == 1
            line = original.said().splitlines()[-1]
            assert line.startswith(f"ottla serve: node.id={number}: "), line
            assert "a copy of this data folder" in line
            assert append(clone) is ErrorCode.none
        finally:
            clone.end()


def test_a_killed_broker_takes_its_id_back_at_once(tmp_path: Path) -> None:
    """The lock of the same folder proves that the former process is gone."""
    with open_cluster(tmp_path) as (cluster, number):
        session = cluster.state.session_of(number)
        cluster.brokers[3 - number].pause()  # nobody deletes the registration of the killed broker
        try:
            cluster.kill(number)
            assert cluster.state.session_of(number) == session
            cluster.launch(number)
            wait_for(
                "a new session", lambda: cluster.state.session_of(number) not in (None, session)
            )
        finally:
            cluster.brokers[3 - number].resume()
        cluster.brokers[number].wait_ready()
        assert append(cluster.brokers[number]) is ErrorCode.none
        assert "is taken by" not in cluster.brokers[number].said()
