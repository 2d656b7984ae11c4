"""A cluster of Apache Kafka 3.9 with ZooKeeper: much of what one may hold, and what clients see.

`observe` reads it through the protocol: of Kafka before it stops, and of Ottla on the same data
after that. Both must say the same. `python -m tests.system.kafka_39_cluster` writes the archive for
the tests that run without Kafka's jars.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from components.apache_kafka import ZOOKEEPER_VERSION, KafkaJars
from components.kafka_with_zookeeper import KafkaWithZooKeeper
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from ottla.testing.ports import free_ports
from ottla.testing.zookeeper_server import ZooKeeperEnsemble

ARCHIVE: Final = Path(__file__).with_name("kafka_3_9_cluster.tar.xz")
EXPECTED: Final = "expected.json"
BROKERS: Final = 2
WAIT_S: Final = 60
FIRST_MS: Final = 1_700_000_000_000
GROUP: Final = "readers"
OPEN: Final = "left-open"
"""The transactional id whose last transaction is open when Kafka stops."""
SETTINGS: Final[Mapping[str, object]] = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": BROKERS,
    "offsets.topic.num.partitions": 2,
    "offsets.topic.replication.factor": BROKERS,
    "offsets.retention.minutes": 2147483647,
    "transaction.state.log.num.partitions": 2,
    "transaction.state.log.replication.factor": BROKERS,
    "transaction.state.log.min.isr": 1,
    "transactional.id.expiration.ms": 2147483647,
    "producer.id.expiration.ms": 2147483647,
    "group.initial.rebalance.delay.ms": 0,
    "log.retention.ms": -1,
    "log.cleaner.backoff.ms": 200,
    "zookeeper.session.timeout.ms": 4_000,
}
TOPICS: Final[Mapping[str, tuple[int, Mapping[str, str]]]] = {
    "plain": (3, {}),
    # Less than Kafka 4 allows, and names that it no longer has.
    "odd": (
        1,
        {
            "segment.bytes": "10000",
            "message.format.version": "2.8",
            "message.downconversion.enable": "false",
            "message.timestamp.difference.max.ms": "99999999999999",
            "max.message.bytes": "70000",
            "min.insync.replicas": "2",
            "index.interval.bytes": "100",
        },
    ),
    "compacted": (
        1,
        {
            "cleanup.policy": "compact",
            "segment.bytes": "3000",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "0",
        },
    ),
    "transactional": (2, {"message.timestamp.type": "LogAppendTime"}),
    "trimmed": (1, {}),
    "again": (1, {}),
    "empty": (2, {}),
    "gone": (2, {}),
}
REMOVED: Final = (
    "message.format.version",
    "message.downconversion.enable",
    "message.timestamp.difference.max.ms",
)
DYNAMIC: Final = {
    "": {"log.cleaner.threads": "2", "message.max.bytes": "2000000", "a.plugin": "x"},
    "1": {"num.io.threads": "5", "log.retention.bytes": "-1"},
}


def fill(cluster: KafkaWithZooKeeper) -> Producer:
    """Write to a running cluster. Returns a producer with an open transaction."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    _done(admin.create_topics([_new(name) for name in TOPICS]))
    _set_dynamic(cluster, admin)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        _produce(cluster, "plain", range(60), {"compression.type": codec}, partitions=3)
    _produce(cluster, "odd", range(400), {"batch.num.messages": 5})
    for round_ in range(5):
        _produce(cluster, "compacted", range(40 - 3 * round_), {"batch.num.messages": 3})
    _produce(cluster, "trimmed", range(30), {})
    _done(admin.delete_records([TopicPartition("trimmed", 0, 17)]))
    _produce(cluster, "again", range(50), {})
    _done(admin.delete_topics(["again", "gone"]))
    _until(lambda: _is_created(admin, "again"))
    _produce(cluster, "again", range(7), {})
    _commit(cluster)
    # The leaders change, so that there are several epochs; and one replica is behind at the end.
    cluster.stop(1)
    _produce(cluster, "plain", range(100, 130), {}, partitions=3)
    cluster.start(1)
    _wait_in_sync(admin)
    _produce(cluster, "plain", range(200, 230), {}, partitions=3)
    return _transactions(cluster)


def _new(name: str) -> NewTopic:
    partitions, settings = TOPICS[name]
    return NewTopic(name, partitions, BROKERS, config=dict(settings))


def _is_created(admin: AdminClient, topic: str) -> bool:
    """False while it is marked for deletion."""
    try:
        _done(admin.create_topics([_new(topic)]))
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


def _done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(WAIT_S)


def _until(true: Callable[[], bool]) -> None:
    limit = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.1)


def _wait_in_sync(admin: AdminClient) -> None:
    _until(
        lambda: all(
            len(partition.isrs) == BROKERS
            for topic in admin.list_topics(timeout=WAIT_S).topics.values()
            for partition in topic.partitions.values()
        )
    )


def _set_dynamic(cluster: KafkaWithZooKeeper, admin: AdminClient) -> None:
    for name, settings in DYNAMIC.items():
        entity = ["--entity-name", name] if name else ["--entity-default"]
        pairs = ",".join(f"{each}={value}" for each, value in settings.items())
        cluster.configure("brokers", *entity, "--add-config", pairs)
    cluster.configure("clients", "--entity-default", "--add-config", "producer_byte_rate=999999999")
    secret = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    user = UserScramCredentialUpsertion("alice", secret, b"alice's")
    _done(admin.alter_user_scram_credentials([user]))


def _produce(
    cluster: KafkaWithZooKeeper,
    topic: str,
    numbers: range,
    settings: Mapping[str, object],
    partitions: int = 1,
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            **settings,
        }
    )
    for number in numbers:
        producer.produce(
            topic,
            None if number % 11 == 5 else f"value {number} {'x' * (number % 90)}",
            f"key-{number % 25}",
            number % partitions,
            timestamp=FIRST_MS + number,
            headers=[("number", str(number).encode()), ("none", None)],
        )
    assert producer.flush(WAIT_S) == 0


def _commit(cluster: KafkaWithZooKeeper) -> None:
    """By a member of a group, which leaves it."""
    settings = {"group.id": GROUP, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **settings})
    consumer.subscribe(["plain"])
    read = 0
    while read < 100:
        read += len(consumer.consume(100 - read, WAIT_S))
    offsets = [TopicPartition("plain", each, 20 + each, metadata=f"at {each}") for each in range(3)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def _transactions(cluster: KafkaWithZooKeeper) -> Producer:
    settings = {"bootstrap.servers": cluster.bootstrap, "transaction.timeout.ms": 900_000}
    ended = Producer({**settings, "transactional.id": "ended"})
    ended.init_transactions(WAIT_S)
    for number in range(6):
        ended.begin_transaction()
        for each in range(10):
            ended.produce("transactional", f"ended {number} {each}", partition=each % 2)
        if number % 3 == 1:
            ended.abort_transaction(WAIT_S)
        else:
            ended.commit_transaction(WAIT_S)
    left_open = Producer({**settings, "transactional.id": OPEN})
    left_open.init_transactions(WAIT_S)
    left_open.begin_transaction()
    for each in range(4):
        left_open.produce("transactional", f"open {each}", partition=each % 2)
    assert left_open.flush(WAIT_S) == 0
    ended.begin_transaction()
    ended.produce("transactional", "behind the open one", partition=0)
    ended.commit_transaction(WAIT_S)
    return left_open


def observe(bootstrap: str) -> dict[str, Any]:
    """What clients see, as JSON."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = admin.list_topics(timeout=WAIT_S).topics
    described = admin.describe_topics(TopicCollection(list(topics)))
    wanted = [
        (name, index)
        for name, topic in topics.items()
        if not name.startswith("__")
        for index in sorted(topic.partitions)
    ]
    partitions = _partitions(bootstrap, wanted)
    groups = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])
    return {
        "topics": {
            name: {
                "id": str(described[name].result(WAIT_S).topic_id),
                "replicas": {
                    str(index): sorted(each.replicas) for index, each in topic.partitions.items()
                },
                "settings": _settings(admin, name),
                "partitions": partitions.get(name, {}),
            }
            for name, topic in sorted(topics.items())
        },
        "offsets": sorted(
            [each.topic, each.partition, each.offset, each.metadata]
            for each in groups[GROUP].result(WAIT_S).topic_partitions
        ),
    }


def _settings(admin: AdminClient, topic: str) -> dict[str, str]:
    """The topic's own, without those that Kafka 4 does not have."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (future,) = admin.describe_configs([resource]).values()
    return {
        name: each.value
        for name, each in sorted(future.result(WAIT_S).items())
        if each.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value and name not in REMOVED
    }


def _partitions(bootstrap: str, wanted: Sequence[tuple[str, int]]) -> dict[str, dict[str, Any]]:
    """By topic and partition, for each isolation level: the first and the last offset, and the
    records; of committed ones the offsets.
    """
    found: dict[str, dict[str, Any]] = {topic: {} for topic, _ in wanted}
    for level in ("read_committed", "read_uncommitted"):
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "nobody",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 10,
                "isolation.level": level,
            }
        )
        try:
            bounds = {
                partition: consumer.get_watermark_offsets(TopicPartition(*partition), WAIT_S)
                for partition in wanted
            }
            consumer.assign(
                [TopicPartition(*partition, low) for partition, (low, _) in bounds.items()]
            )
            records = _until_the_ends(consumer, wanted)
        finally:
            consumer.close()
        for (topic, index), (low, high) in bounds.items():
            seen = records[topic, index]
            if level == "read_committed":
                seen = [record[0] for record in seen]
            found[topic].setdefault(str(index), {})[level] = [low, high, seen]
    return found


def _until_the_ends(
    consumer: Consumer, wanted: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], list[Any]]:
    found: dict[tuple[str, int], list[Any]] = {partition: [] for partition in wanted}
    left = set(wanted)
    while left:
        message = consumer.poll(WAIT_S)
        assert message is not None, f"no record and no end of {left}"
        partition = message.topic(), message.partition()
        error = message.error()
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            left.discard(partition)
            continue
        key, value = message.key(), message.value()
        found[partition].append(
            [
                message.offset(),
                *message.timestamp(),
                key and key.decode(),
                value and value.decode(),
                [[name, each and each.decode()] for name, each in message.headers() or ()],
            ]
        )
    return found


def cleaned(cluster: KafkaWithZooKeeper) -> bool:
    """Whether Kafka has compacted what it can."""
    seen = _partitions(cluster.bootstrap, [("compacted", 0)])
    low, high, records = seen["compacted"]["0"]["read_uncommitted"]
    return bool(len(records) < high - low - 60)


@contextmanager
def filled(folder: Path, jars: KafkaJars) -> Iterator[tuple[KafkaWithZooKeeper, Producer]]:
    """A running cluster in this folder, with its ZooKeeper where `ottla.testing.Cluster` has it."""
    ensemble = ZooKeeperEnsemble(folder, 1, 0)
    ensemble.start()
    cluster = KafkaWithZooKeeper(folder, ensemble.connect, free_ports(BROKERS), SETTINGS, jars)
    try:
        cluster.start()
        left_open = fill(cluster)
        _until(lambda: cleaned(cluster))
        yield cluster, left_open
    finally:
        cluster.kill()
        ensemble.stop()


def main() -> int:
    jars = KafkaJars.fetched(version=ZOOKEEPER_VERSION)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with filled(folder, jars) as (cluster, _):
            seen = observe(cluster.bootstrap)
            cluster.stop()
        (folder / EXPECTED).write_text(json.dumps(seen))
        _write(folder)
    return 0


def _write(folder: Path) -> None:
    for path in (*folder.glob("kafka-*"), *folder.glob("zookeeper-*/*.log")):
        path.unlink()
    # Without their padding.
    for log in folder.glob("zookeeper-*/data/version-2/log.*"):
        log.write_bytes(log.read_bytes().rstrip(b"\0") + bytes(16))
    for index in folder.glob("broker-*/*-delete/*index"):
        index.write_bytes(b"")
    with tarfile.open(ARCHIVE, "w:xz") as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, path.name)


if __name__ == "__main__":
    sys.exit(main())
