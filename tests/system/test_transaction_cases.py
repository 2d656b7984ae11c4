"""Transactions in bad cases: topics that go, clients of two protocol versions, epochs that run out,
a full disk, many ids, and an open transaction beside compaction and retention.
"""

from __future__ import annotations

import re
import resource
import urllib.request
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from tests.system.cluster_load import QUICK, create, wait_for
from tests.system.test_cli import Typed
from tests.system.test_cli_transactions import leave_hanging
from tests.system.test_cluster_full_disk import check_ended
from tests.system.test_transactions import (
    WAIT_S,
    end_offset,
    new_topic,
    read,
    transactional,
    write,
)
from tests.system.wire import Wire
from tests.system.wire_producer import WireProducer

from ottla.protocol.errors import ErrorCode
from ottla.shards.partitioning import partition_for
from ottla.testing import Cluster
from ottla.testing.ports import free_ports

LIST_OFFSETS: Final = 2
API_VERSIONS: Final = 18
UPDATE_FEATURES: Final = 57
LIST_TRANSACTIONS: Final = 66
SAFE_DOWNGRADE: Final = 2
UPGRADE: Final = 1
LAST_EPOCH: Final = 32_766
"""Of a producer id; 32767 is left for a fence."""
MARKER_BYTES: Final = 78
SOON: Final = (
    *("--config", "log.cleaner.backoff.ms=200"),
    *("--config", "log.retention.check.interval.ms=500"),
)


def admin_of(broker: Any) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def delete(broker: Any, topic: str) -> None:
    admin = admin_of(broker)
    admin.delete_topics([topic])[topic].result(WAIT_S)


@pytest.mark.parametrize("commits", [True, False])
def test_a_topic_is_deleted_in_an_open_transaction(broker: Any, commits: bool) -> None:
    """The transaction ends in the other partitions, and the id goes on."""
    gone, kept = new_topic(broker), new_topic(broker)
    producer = transactional(broker, f"x-{gone}")
    producer.begin_transaction()
    producer.produce(gone, "v")
    producer.produce(kept, "first")
    assert producer.flush(WAIT_S) == 0
    delete(broker, gone)
    if commits:
        producer.commit_transaction(WAIT_S)
    else:
        producer.abort_transaction(WAIT_S)
    write(producer, kept, "second", commits=True)
    assert read(broker, kept, 2 if commits else 1) == ["first", "second"][not commits :]
    assert end_offset(broker, kept, "read_committed") == 4


def test_a_topic_is_created_again_in_an_open_transaction(broker: Any) -> None:
    """The new one has nothing of the transaction, so the marker is alone in it."""
    topic = new_topic(broker)
    producer = transactional(broker, f"x-{topic}")
    producer.begin_transaction()
    producer.produce(topic, "lost with the topic")
    assert producer.flush(WAIT_S) == 0
    delete(broker, topic)
    admin = admin_of(broker)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(WAIT_S)
    producer.commit_transaction(WAIT_S)
    write(transactional(broker, f"x-{topic}"), topic, "kept", commits=True)
    assert read(broker, topic, 1) == ["kept"]


def test_partitions_are_added_in_an_open_transaction(broker: Any) -> None:
    topic = new_topic(broker)
    producer = transactional(broker, f"x-{topic}", **{"topic.metadata.refresh.interval.ms": 100})
    producer.begin_transaction()
    producer.produce(topic, "old", partition=0)
    assert producer.flush(WAIT_S) == 0
    admin = admin_of(broker)
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(WAIT_S)
    wait_for(
        "the new partition", lambda: len(producer.list_topics(topic).topics[topic].partitions) == 2
    )
    producer.produce(topic, "new", partition=1)
    producer.commit_transaction(WAIT_S)
    assert read(broker, topic, 1) == ["old"]
    assert end_offset(broker, topic, "read_committed") == 2
    with Wire(broker.bootstrap) as reader:
        build = reader.request(LIST_OFFSETS, 7)
        partition = build.ListOffsetsPartition(partition_index=1, timestamp=-1)
        named = build.ListOffsetsTopic(name=topic, partitions=(partition,))
        request = build.ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=(named,))
        assert reader.ask(request).topics[0].partitions[0].offset == 2


def test_clients_of_both_versions_share_an_id(broker: Any) -> None:
    """A new producer fences the one before, whichever transaction.version each has."""
    topic = new_topic(broker)
    stock = transactional(broker, f"x-{topic}")
    write(stock, topic, "a", commits=True)
    with Wire(broker.bootstrap) as wire:
        second = WireProducer(wire, f"x-{topic}")
        assert second.init() is ErrorCode.none
        stock.begin_transaction()
        stock.produce(topic, "lost")
        with pytest.raises(KafkaException):
            stock.commit_transaction(WAIT_S)
        for value, commits in ((b"b", True), (b"lost too", False), (b"c", True)):
            assert second.produce(topic, value) is ErrorCode.none
            assert second.end(commits=commits) is ErrorCode.none
        assert second.produce(topic, b"left open") is ErrorCode.none
        third = transactional(broker, f"x-{topic}")
        assert second.produce(topic, b"late") is ErrorCode.invalid_producer_epoch
        assert second.end(commits=True) is ErrorCode.producer_fenced
        write(third, topic, "d", commits=True)
    assert read(broker, topic, 4) == ["a", "b", "c", "d"]


@pytest.mark.full
def test_epochs_that_run_out(broker: Any) -> None:
    topic = new_topic(broker)
    with Wire(broker.bootstrap) as wire:
        producer = WireProducer(wire, f"x-{topic}")
        producer.init()
        first_id = producer.producer_id
        # By new producers: each takes an epoch, and the last of them a new producer id.
        while producer.producer_id == first_id:
            before = producer.epoch
            assert producer.init() is ErrorCode.none
        assert (before, producer.epoch) == (LAST_EPOCH, 0)
        # By transactions: each end takes one.
        second_id = producer.producer_id
        while producer.epoch < LAST_EPOCH - 1:
            assert producer.init() is ErrorCode.none
        values: list[str] = []
        while producer.producer_id == second_id:
            values.append(f"v{len(values)}")
            assert producer.produce(topic, values[-1].encode()) is ErrorCode.none
            assert producer.end(commits=True) is ErrorCode.none
        assert producer.epoch == 0
        assert len(values) == 2
        assert producer.produce(topic, b"after") is ErrorCode.none
        assert producer.end(commits=True) is ErrorCode.none
    write(transactional(broker, f"x-{topic}"), topic, "stock", commits=True)
    assert read(broker, topic, len(values) + 2) == [*values, "after", "stock"]


@pytest.mark.full
def test_ten_thousand_ids(new_broker: Any, tmp_path: Path) -> None:
    count, data = 10_000, tmp_path / "data"
    broker = new_broker(data=data)
    topic = new_topic(broker)
    with Wire(broker.bootstrap) as wire:
        for number in range(count):
            assert WireProducer(wire, f"id-{number}").init() is ErrorCode.none
    broker.kill()
    again = new_broker(data=data)
    write(transactional(again, "id-7"), topic, "v", commits=True)
    with Wire(again.bootstrap) as wire:
        build = wire.request(LIST_TRANSACTIONS, 2)
        for pattern, found in (("id-.*", count), ("id-99..", 100)):
            request = build.ListTransactionsRequest(
                state_filters=(), producer_id_filters=(), transactional_id_pattern=pattern
            )
            answer = wire.ask(request)
            assert answer.error_code is ErrorCode.none
            assert len(answer.transaction_states) == found
    assert read(again, topic, 1) == ["v"]


def log_bytes(data: Path, topic: str) -> int:
    return sum(path.stat().st_size for path in (data / f"{topic}-0").glob("*.log"))


def create_held_and_others(broker: Any) -> None:
    """Two compacted topics, "held" and "free", and "short", which retention keeps short."""
    segments = {"segment.bytes": str(1 << 20)}
    compact = {**segments, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    short = {**segments, "retention.bytes": str(1 << 20)}
    topics = [
        NewTopic("held", 1, 1, config=compact),
        NewTopic("free", 1, 1, config=compact),
        NewTopic("short", 1, 1, config=short),
    ]
    admin = admin_of(broker)
    for future in admin.create_topics(topics).values():
        future.result(WAIT_S)


def check_that_only_held_is_held(broker: Any, data: Path) -> None:
    """A transaction is open in "held" and "short" while 4 MB come into each topic."""
    load = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 100})
    for number in range(4_000):
        for topic in ("held", "free", "short"):
            load.produce(topic, bytes(1_000), key=f"k{number % 10}")
        load.poll(0)
    assert load.flush(WAIT_S) == 0
    assert log_bytes(data, "held") > 4_000_000
    wait_for("compaction beside it", lambda: log_bytes(data, "free") < 1_500_000, WAIT_S)
    wait_for("retention", lambda: log_bytes(data, "short") < 2_500_000, WAIT_S)
    assert log_bytes(data, "held") > 4_000_000


@pytest.mark.full
def test_an_open_transaction_beside_compaction_and_retention(
    new_broker: Any, tmp_path: Path
) -> None:
    """It stops compaction in its own partition only, and retention in none."""
    data = tmp_path / "data"
    broker = new_broker(*SOON, data=data)
    create_held_and_others(broker)
    open_one = transactional(broker, "x")
    open_one.begin_transaction()
    for topic in ("held", "short"):
        open_one.produce(topic, "open", key="open")
    assert open_one.flush(WAIT_S) == 0
    check_that_only_held_is_held(broker, data)
    open_one.commit_transaction(WAIT_S)
    assert end_offset(broker, "short", "read_committed") == 4_002
    wait_for("compaction after it", lambda: log_bytes(data, "held") < 1_500_000, WAIT_S)


def shown_as_hanging(port: int) -> dict[str, int]:
    """By topic, what /metrics says."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=WAIT_S) as answer:
        page = answer.read().decode()
    found = re.findall(
        r'^ottla_partition_hanging_transactions\{.*topic="(\w+)".*\} (\d+)', page, re.MULTILINE
    )
    return {topic: int(float(count)) for topic, count in found}


@pytest.mark.full
def test_a_hanging_transaction_beside_compaction_and_retention(
    new_broker: Any, tmp_path: Path
) -> None:
    """No coordinator knows of it, so that it stays. Other transactions go on, also in its
    partitions; health and metrics show it, and an operator ends it.
    """
    data, (port,) = tmp_path / "data", free_ports(1)
    unverified = "transaction.partition.verification.enable=false"
    metrics = f"ottla.metrics.listener=127.0.0.1:{port}"
    broker = new_broker(*SOON, "--config", unverified, "--config", metrics, data=data)
    cli = Typed(broker.bootstrap)
    create_held_and_others(broker)
    written_ago_ms = 30 * 60_000
    hanging = {topic: leave_hanging(broker, topic, written_ago_ms) for topic in ("held", "short")}
    check_that_only_held_is_held(broker, data)
    # Retention has removed its records in "short", where it is open nevertheless.
    other = transactional(broker, "x")
    for topic in ("held", "free", "short"):
        other.begin_transaction()
        other.produce(topic, "v", key="other")
        other.commit_transaction(WAIT_S)
    assert cli.json("transaction", "describe", "x")[0]["state"] == "CompleteCommit"
    wait_for("its marker", lambda: end_offset(broker, "free", "read_committed") == 4_002)
    assert end_offset(broker, "held", "read_committed") == 0
    found = cli.json("health", code=1)
    assert found["state"] == "degraded"
    assert {each["topic"] for each in found["hanging_transactions"]} == hanging.keys()
    assert shown_as_hanging(port) | {"held": 1, "short": 1, "free": 0} == shown_as_hanging(port)
    for topic, producer_id in hanging.items():
        where = ["--topic", topic, "--partition", 0, "--producer", producer_id]
        assert cli.json("transaction", "abort", *where, "--yes")["aborted"]
    assert cli.json("health")["hanging_transactions"] == []
    assert end_offset(broker, "held", "read_committed") == 4_004
    wait_for("compaction after it", lambda: log_bytes(data, "held") < 1_500_000, WAIT_S)


@pytest.mark.full
def test_a_disk_that_fills_when_a_marker_is_written(tmp_path: Path) -> None:
    """The leader has room for the record, not for the marker. Another one takes over, and the
    coordinator, on a third broker, writes the marker there.
    """
    settings = {**QUICK, "transaction.state.log.num.partitions": 3}
    with Cluster(3, settings, data=tmp_path / "cluster", proxies=False) as cluster:
        create(cluster, "t", replica_assignment=[[1, 2, 3]])
        transactional(cluster, "first")
        ids = (f"x-{number}" for number in range(50))
        coordinator = {
            name: cluster.leader("__transaction_state", partition_for(name, 3)) for name in ids
        }
        name = next(each for each, broker in coordinator.items() if broker != 1)
        producer = transactional(cluster, name)
        value = "v" * 2_000
        values: list[str] = []

        def copy() -> None:
            values.append(f"{len(values)}-{value}")
            write(producer, "t", values[-1], commits=True)

        copy()
        (log,) = (cluster.brokers[1].data / "t-0").glob("*.log")
        while log.stat().st_size < 256 * 1024:
            copy()
        wait_for(
            "the last marker", lambda: end_offset(cluster, "t", "read_committed") == 2 * len(values)
        )
        size = log.stat().st_size
        copy()
        wait_for(
            "its marker", lambda: end_offset(cluster, "t", "read_committed") == 2 * len(values)
        )
        one = log.stat().st_size - size
        most = log.stat().st_size + one - MARKER_BYTES // 2
        process = cluster.brokers[1].process
        assert process is not None
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
        for _ in range(5):
            copy()
        check_ended(cluster, 1)
        assert cluster.leader("t") != 1
        assert read(cluster, "t", len(values)) == values
        cluster.start(1)
        cluster.wait_in_sync("t")


def finalized(address: str) -> tuple[int, int]:
    """The epoch of the finalized features, and the level of transaction.version."""
    with Wire(address) as wire:
        build = wire.request(API_VERSIONS, 4)
        answer = wire.ask(
            build.ApiVersionsRequest(client_software_name="t", client_software_version="1")
        )
    (level,) = (
        each.max_version_level
        for each in answer.finalized_features
        if each.name == "transaction.version"
    )
    return answer.finalized_features_epoch, level


def set_level(address: str, level: int, upgrade_type: int) -> ErrorCode:
    with Wire(address) as wire:
        build = wire.request(UPDATE_FEATURES, 1)
        update = build.FeatureUpdateKey(
            feature="transaction.version", max_version_level=level, upgrade_type=upgrade_type
        )
        request = build.UpdateFeaturesRequest(timeout=30_000, feature_updates=(update,))
        code: ErrorCode = wire.ask(request).error_code
        return code


@pytest.mark.full
def test_the_transaction_version_of_a_cluster(tmp_path: Path) -> None:
    """On an ensemble of three: changed through any broker, kept by the next controller."""
    with Cluster(3, QUICK, ensemble=3, data=tmp_path / "cluster") as cluster:
        create(cluster, "t")

        def levels() -> set[tuple[int, int]]:
            return {finalized(each.bootstrap) for each in cluster.brokers.values() if each.running}

        ((epoch, level),) = wait_for("one level", lambda: len(levels()) == 1 and levels())
        assert level == 2
        controller = cluster.controller()
        other = next(each for number, each in cluster.brokers.items() if number != controller)
        assert set_level(other.bootstrap, 1, SAFE_DOWNGRADE) is ErrorCode.none
        wait_for("level 1", lambda: {level for _, level in levels()} == {1})
        assert min(epoch for epoch, _ in levels()) > epoch
        write(transactional(cluster, "x"), "t", "one", commits=True)
        cluster.kill(controller)
        cluster.wait_for(
            "a controller", lambda: cluster.state.controller() not in (None, controller)
        )
        write(transactional(cluster, "x"), "t", "two", commits=True)
        assert set_level(other.bootstrap, 2, UPGRADE) is ErrorCode.none
        cluster.start(controller)
        wait_for("level 2", lambda: {level for _, level in levels()} == {2})
        write(transactional(cluster, "x"), "t", "three", commits=True)
        assert read(cluster, "t", 3) == ["one", "two", "three"]
