"""Three brokers of either kind: their settings, and that they end with the `with` block."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench.clusters import CLUSTER_SETTINGS, SIZE, SSL, RunningCluster, in_sync
from components.apache_kafka import KafkaJars
from components.child import ChildDiedError
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from bench import clusters


def fake_jars(folder: Path, script: str) -> KafkaJars:
    command = folder / "java"
    command.write_text(f"#!{sys.executable}\nimport sys\n{script}\n")
    command.chmod(0o755)
    return KafkaJars(folder, str(command))


def properties_of(cluster: RunningCluster, number: int) -> dict[str, str]:
    folder = cluster.brokers[number].child.log.parent
    lines = (folder / "server.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


@pytest.fixture
def kafka(tmp_path: Path) -> Any:
    """Three members, each started once; their fake Java exits at once."""
    cluster = RunningCluster("Apache Kafka", fake_jars(tmp_path, ""), {"num.partitions": "9"})
    for broker in cluster.brokers.values():
        broker.start()
    yield cluster
    cluster.__exit__(None, None, None)


def test_kafkas_members_know_each_other(kafka: RunningCluster) -> None:
    found = {number: properties_of(kafka, number) for number in (1, 2, 3)}
    assert {each["node.id"] for each in found.values()} == {"1", "2", "3"}
    (voters,) = {each["controller.quorum.voters"] for each in found.values()}
    assert [voter.partition("@")[0] for voter in voters.split(",")] == ["1", "2", "3"]
    for number, each in found.items():
        plain, controller = each["listeners"].split(",")
        assert plain == f"PLAINTEXT://{kafka.brokers[number].address}"
        assert each["advertised.listeners"] == plain
        address = controller.removeprefix("CONTROLLER://")
        assert f"{number}@{address}" in voters.split(",")
    ports = {port_of(each) for each in kafka.address.split(",")}
    assert len(ports | {port_of(voter) for voter in voters.split(",")}) == 2 * SIZE


def test_both_brokers_get_the_same_settings(kafka: RunningCluster, tmp_path: Path) -> None:
    script = tmp_path / "ottla"
    script.write_text(f"#!{sys.executable}\nimport sys\nprint('\\n'.join(sys.argv[1:]))\n")
    script.chmod(0o755)
    ottla = RunningCluster(
        "Ottla", None, {"num.partitions": "9"}, (str(script), "--to", "trace-{broker}")
    )
    try:
        words = {}
        for number, broker in ottla.brokers.items():
            broker.start()
            broker.child.process.wait(20)
            words[number] = broker.child.log.read_text().splitlines()
    finally:
        ottla.__exit__(None, None, None)
    settings = CLUSTER_SETTINGS | {"num.partitions": "9"}
    (ensemble,) = {each[each.index("--zookeeper") + 1] for each in words.values()}
    for number, each in words.items():
        assert each[:3] == ["--to", f"trace-{number}", "serve"]
        assert each[each.index("--id") + 1] == str(number)
        given = [each[place + 1] for place, word in enumerate(each) if word == "--config"]
        assert dict(word.split("=", 1) for word in given) == settings
        assert settings.items() <= properties_of(kafka, number).items()
    assert ensemble.startswith("127.0.0.1:")
    assert len({each[each.index("--data") + 1] for each in words.values()}) == SIZE
    assert len({each[each.index("--listen") + 1] for each in words.values()}) == SIZE


def test_kafkas_members_use_tls_everywhere(tmp_path: Path) -> None:
    cluster = RunningCluster("Apache Kafka", fake_jars(tmp_path, ""), protocol=SSL)
    try:
        for number, broker in cluster.brokers.items():
            broker.start()
            found = properties_of(cluster, number)
            endpoints = [each.partition("://")[0] for each in found["listeners"].split(",")]
            assert endpoints == ["SSL", "CONTROLLER"]
            assert found["listener.security.protocol.map"] == "CONTROLLER:SSL,SSL:SSL"
            assert found["inter.broker.listener.name"] == "SSL"
            assert found["ssl.truststore.location"] == cluster.client["ssl.ca.location"]
            assert Path(found["ssl.keystore.location"]).is_file()
    finally:
        cluster.__exit__(None, None, None)


def test_a_cluster_that_does_not_start_raises_and_leaves_nothing(tmp_path: Path) -> None:
    script = "print('no quorum'); sys.exit('kafka.Kafka' in sys.argv)"
    cluster = RunningCluster("Apache Kafka", fake_jars(tmp_path, script))
    with pytest.raises(ChildDiedError, match="no quorum"), cluster:
        pass
    assert all(broker.child.process.poll() is not None for broker in cluster.brokers.values())
    assert not cluster.brokers[1].child.log.parent.parent.exists()


def topics(*partitions: tuple[int, list[int]]) -> Any:
    """An admin client whose topic t has these leaders and ISRs."""
    described = {
        index: SimpleNamespace(leader=leader, isrs=isr)
        for index, (leader, isr) in enumerate(partitions)
    }
    told = SimpleNamespace(topics={"t": SimpleNamespace(partitions=described)})
    return SimpleNamespace(list_topics=lambda *_: told)


def test_a_topic_is_ready_when_every_partition_has_a_leader_and_is_in_sync() -> None:
    assert in_sync(topics((1, [1, 2]), (2, [2, 1])), "t", 2)
    assert not in_sync(topics((1, [1, 2]), (2, [2])), "t", 2)
    assert not in_sync(topics((1, [1, 2]), (-1, [1, 2])), "t", 2)


def test_a_timeout_shows_the_brokers_last_output(
    kafka: RunningCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "ADMIN_WAIT_SECONDS", 0.05)
    looks = []

    def check() -> bool:
        looks.append(1)
        raise KafkaException("not yet")

    with pytest.raises(ChildDiedError, match="waited 0 s for three brokers"):
        kafka._until("three brokers", check)
    assert len(looks) > 1


@pytest.mark.parametrize("controller", [1, 3])
def test_kafkas_controller_comes_from_the_quorum_status(tmp_path: Path, controller: int) -> None:
    script = f"print('ClusterId: x\\nLeaderId:              {controller}\\nLeaderEpoch: 7')"
    cluster = RunningCluster("Apache Kafka", fake_jars(tmp_path, script))
    assert cluster.controller() == controller
    cluster.__exit__(None, None, None)


def test_three_real_brokers_serve_and_end_with_the_block() -> None:
    with RunningCluster("Ottla", None) as cluster:
        cluster.create_topic("t", partitions=2)
        admin = cluster.admin
        assert in_sync(admin, "t", SIZE)
        assert cluster.leader("t") in cluster.brokers
        assert cluster.controller() in cluster.brokers
        folder = cluster.brokers[1].child.log.parent
        assert folder.is_dir()
    assert all(broker.child.process.returncode == -9 for broker in cluster.brokers.values())
    assert not folder.exists()


def test_three_real_brokers_replicate_over_tls_alone() -> None:
    with RunningCluster("Ottla", None, protocol=SSL) as cluster:
        cluster.create_topic("t")
        producer = Producer({"bootstrap.servers": cluster.address, **cluster.client})
        failures: list[object] = []
        producer.produce("t", b"v", on_delivery=lambda error, _: failures.append(error))
        assert producer.flush(30) == 0
        assert failures == [None]
        assert "ssl.ca.location=" + cluster.client["ssl.ca.location"] in cluster.options
        for broker in cluster.brokers.values():
            arguments = str(broker.child.process.args)
            assert f"listeners=SSL://{broker.address}" in arguments
            assert "--listen" not in arguments
        plain = AdminClient({"bootstrap.servers": cluster.address, "log_level": 0})
        with pytest.raises(KafkaException):
            plain.list_topics(timeout=1)
