"""A copy of a broker's folder has its id and its settings, and other addresses."""

from __future__ import annotations

from pathlib import Path

from faults.clone import clone_of

from ottla.testing.broker_process import BrokerProcess


def test_a_clone_has_the_data_and_the_settings_and_not_the_ports(tmp_path: Path) -> None:
    data = tmp_path / "broker-2"
    (data / "t-0").mkdir(parents=True)
    (data / "meta.properties").write_text("node.id=2\n")
    (data / "t-0" / "0.log").write_bytes(b"records")
    options = [
        *("--id", "2", "-c", "listeners=PLAINTEXT://127.0.0.1:9,REPLICATION://127.0.0.1:8"),
        *("-c", "advertised.listeners=PLAINTEXT://127.0.0.1:9,REPLICATION://127.0.0.1:7"),
        *("-c", "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,REPLICATION:PLAINTEXT"),
        *("-c", "inter.broker.listener.name=REPLICATION", "--zookeeper", "127.0.0.1:6"),
        *("-c", "min.insync.replicas=2"),
    ]
    clone = clone_of(BrokerProcess(data, options, "127.0.0.1:9"), tmp_path / "copy", "127.0.0.1:5")
    expected = ["--id", "2", "--zookeeper", "127.0.0.1:5", "-c", "min.insync.replicas=2"]
    assert clone.options == expected
    assert clone.bootstrap != "127.0.0.1:9"
    assert (clone.data / "t-0" / "0.log").read_bytes() == b"records"
    assert (clone.data / "meta.properties").read_text() == "node.id=2\n"
