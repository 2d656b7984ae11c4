"""A cluster with the load of `faults` on it, for the tests of clusters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from faults.anomaly import Policy
from faults.checker import check
from faults.clients import Rate
from faults.history import Acknowledged, ClientError, Event, Polled, Recorder, Refused, Unknown
from faults.load import Load
from faults.watch import ElectionWatch
from tests.system.wire import Wire

from ottla.testing import Cluster

TOPIC = "faults"
PARTITIONS = 3
QUICK: Mapping[str, object] = {
    "zookeeper.session.timeout.ms": 3_000,
    "zookeeper.connection.timeout.ms": 20_000,
    "replica.lag.time.max.ms": 3_000,
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    # A member of a share group learns what it reads with its second heartbeat.
    "group.share.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 300,
    "controlled.shutdown.retry.backoff.ms": 500,
    # The tests say who leads; test_cluster_docs sees a broker get its leaderships back.
    "auto.leader.rebalance.enable": "false",
}
WAIT_S = 30.0
METADATA = 3


def wait_for(what: str, look: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:
    """What `look` gives once it is true."""
    until = time.monotonic() + timeout_s
    while not (found := look()):
        assert time.monotonic() < until, f"waited {timeout_s:g} s for {what}"
        time.sleep(0.05)
    return found


def admin_of(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def told_of(cluster: Cluster, broker: int, topic: str) -> dict[int, Any]:
    """The partitions in this broker's metadata; it hears later than ZooKeeper of what is new."""
    with Wire(cluster.brokers[broker].bootstrap) as wire:
        build = wire.request(METADATA, 9)
        asked = build.MetadataRequest(
            topics=(build.MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False
        )
        (found,) = wire.ask(asked).topics
    return {each.partition_index: each for each in found.partitions}


def wait_known(cluster: Cluster, topic: str, partitions: int) -> None:
    """Wait until every running broker's metadata has that many partitions, all led. A client that
    asks
    one which has not heard yet refuses a record for a new partition by itself."""

    def knows(broker: int) -> bool:
        found = told_of(cluster, broker, topic).values()
        return [each.leader_id >= 0 for each in found] == [True] * partitions

    for broker in (number for number, each in cluster.brokers.items() if each.running):
        wait_for(f"broker {broker} to know {topic}", partial(knows, broker))


def wait_out_of_sync(cluster: Cluster, broker: int, topic: str) -> None:
    """Wait until the leader of partition 0 counts on this broker no more."""
    leader = cluster.leader(topic)
    wait_for(
        f"broker {leader} to do without broker {broker}",
        lambda: broker not in told_of(cluster, leader, topic)[0].isr_nodes,
    )


def create(cluster: Cluster, topic: str, partitions: int = 1, **options: Any) -> None:
    """The topic with three replicas, or as `options` of NewTopic say, whole."""
    if "replica_assignment" not in options:
        options = {"replication_factor": 3, **options}
    admin = admin_of(cluster)
    admin.create_topics([NewTopic(topic, partitions, **options)])[topic].result(WAIT_S)
    cluster.wait_in_sync(topic)
    wait_known(cluster, topic, partitions)


def error_of(work: Any) -> str:
    """The name of the error with which a future of the admin client ends."""
    try:
        work.result(WAIT_S)
    except KafkaException as fault:
        return str(fault.args[0].name())
    return "NO_ERROR"


def produce(
    cluster: Cluster, topic: str, count: int, partition: int = 0, **config: Any
) -> list[str]:
    """Sends that many records; the name of each one's error, or NO_ERROR."""
    told: list[str] = []
    given = {"bootstrap.servers": cluster.bootstrap, "acks": "all", **config}
    producer = Producer({name.replace("_", "."): value for name, value in given.items()})
    for number in range(count):
        producer.produce(
            topic,
            str(number).encode(),
            partition=partition,
            on_delivery=lambda error, _: told.append(error.name() if error else "NO_ERROR"),
        )
    assert producer.flush(WAIT_S) == 0
    return told


class Loaded:
    """A load that runs on a cluster, and what came of it so far."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def events(self, *kinds: type[Event]) -> list[Any]:
        return [event for event in self.recorder.events if isinstance(event, kinds)]

    def wait_progress(self, records: int = 50, timeout_s: float = WAIT_S) -> None:
        """Wait until that many more records were acknowledged, and some more polled."""
        acknowledged = len(self.events(Acknowledged)) + records
        polled = len(self.events(Polled)) + 1
        wait_for("more acknowledged", lambda: len(self.events(Acknowledged)) >= acknowledged)
        wait_for("more polled", lambda: len(self.events(Polled)) >= polled, timeout_s)

    def told_errors(self) -> list[Any]:
        """All that a client did not get over by itself."""
        return self.events(ClientError, Refused, Unknown)


@contextmanager
def load_on(
    cluster: Cluster, folder: Path, *, assignment: list[list[int]] | None = None
) -> Iterator[Loaded]:
    """Load while the block runs; then everything is read, and the checker must find nothing.

    `assignment` has the replicas of each partition; otherwise they are placed by the cluster.
    """
    partitions = PARTITIONS if assignment is None else len(assignment)
    placed = {} if assignment is None else {"replica_assignment": assignment}
    create(cluster, TOPIC, partitions, **placed)
    recorder = Recorder(folder / "history.jsonl", lambda: time.monotonic_ns() // 1_000_000)
    watch = ElectionWatch(cluster.zookeeper, TOPIC, partitions, recorder)
    watch.start()
    rate = Rate(producers=2, consumers=2, records_per_s=200)
    load = Load(cluster.bootstrap, TOPIC, partitions, recorder, Policy.strict, rate)
    loaded = Loaded(recorder)
    load.start()
    try:
        loaded.wait_progress()
        yield loaded
        loaded.wait_progress()
    finally:
        load.stop()
        watch.stop()
    load.read_all()
    recorder.close()
    assert check(recorder.events, Policy.strict).anomalies == ()


@contextmanager
def loaded_cluster(
    folder: Path, settings: Mapping[str, object] = MappingProxyType({}), ensemble: int = 1
) -> Iterator[tuple[Cluster, Loaded]]:
    """Three brokers under load, `settings` before those of QUICK; the checker has the last word."""
    with (
        Cluster(3, {**QUICK, **settings}, ensemble=ensemble, data=folder / "cluster") as cluster,
        load_on(cluster, folder) as load,
    ):
        yield cluster, load
