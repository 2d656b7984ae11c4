from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from conformance.replicas import Replicas, assigned

from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.testing import Cluster

VALUES = 50


def folder(tmp_path: Path, name: str, value: bytes) -> Path:
    """A broker's data folder, with one record in t-0 and compacted-0."""
    for partition in ("t-0", "compacted-0"):
        (tmp_path / name / partition).mkdir(parents=True)
        batch = build_batch([Record(0, 1_000, None, value)])
        (tmp_path / name / partition / f"{0:020}.log").write_bytes(bytes(batch))
    checkpoint = tmp_path / name / "replication-offset-checkpoint"
    checkpoint.write_text("0\n2\nt 0 1\ncompacted 0 1\n")
    return tmp_path / name


def replicas(*folders: Path) -> Replicas:
    held = {("t", 0): folders, ("compacted", 0): folders, ("alone", 0): folders[:1]}
    return Replicas(held, frozenset({"compacted"}))


def test_copies_of_what_is_not_compacted_are_compared(tmp_path: Path) -> None:
    same = replicas(folder(tmp_path, "a", b"v"), folder(tmp_path, "b", b"v"))
    assert set(same.comparable()) == {("t", 0)}
    assert same.differences() == []


def test_a_difference_names_the_partition(tmp_path: Path) -> None:
    others = replicas(folder(tmp_path, "a", b"v"), folder(tmp_path, "b", b"w"))
    (found,) = others.differences()
    assert found.startswith("t-0: replicas differ: a and b differ: offsets 0 to 0")


def test_a_cluster_tells_who_holds_what_and_its_copies_are_the_same() -> None:
    with Cluster(brokers=2, config={"default.replication.factor": 2}, proxies=False) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        topics = [
            NewTopic("copied", 2, 2),
            NewTopic("single", 1, 1),
            NewTopic("compacted", 1, 2, config={"cleanup.policy": "compact"}),
        ]
        for made in admin.create_topics(topics).values():
            made.result(60)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        for number in range(VALUES):
            producer.produce("copied", b"%d" % number, partition=number % 2)
        producer.produce("single", b"one")
        assert producer.flush(60) == 0
        cluster.wait_in_sync()
        found = assigned(cluster)
        for number in cluster.brokers:
            cluster.stop(number)
        assert found.compacted == {"compacted", "__consumer_offsets", "__transaction_state"}
        assert set(found.comparable()) == {("copied", 0), ("copied", 1)}
        (alone,) = found.held["single", 0]
        assert (alone / "single-0").is_dir()
        assert found.differences() == []
