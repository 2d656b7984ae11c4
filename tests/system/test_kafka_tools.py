"""Apache Kafka's own log dump tool reads what Ottla wrote, and finds no fault."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest
from components.apache_kafka import KafkaJars
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.system.torn_tails import spoil_indexes, tear

from components import fixture
from conformance import log_dump

kafka_jars = fixture.kafka_jars
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
SEGMENT_BYTES = 1_048_576
KEYS = 50
KILLS = 6
WRITERS = 3
WAIT_S = 90
COMPACTED_AWAY = re.compile(
    r"compacted-transactions-0/.*( is followed by |Index timestamp: \d+, log timestamp: -1$)"
)
"""Compaction leaves gaps, and headers of batches without records, which have the timestamp of the
records that went. The tool reports both for Apache Kafka's logs, too: `LogSegment.append` adds a
batch's largest timestamp to the index, and the tool looks for it among the records."""
SOON = (
    *("--config", "log.cleaner.backoff.ms=200"),
    *("--config", "log.retention.check.interval.ms=1000"),
)


def make_topic(bootstrap: str, name: str, settings: dict[str, str] | None = None) -> None:
    config = {"segment.bytes": str(SEGMENT_BYTES), **(settings or {})}
    topics = [NewTopic(name, 1, 1, config=config)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics(topics)[name].result(30)


def produce(bootstrap: str, topic: str, count: int, **settings: Any) -> None:
    """Half random values, so that compressed segments roll too, one key for every fifty."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "batch.num.messages": 100, **settings}
    )
    for number in range(count):
        value = os.urandom(500) + b"." * 500
        producer.produce(topic, value, key=b"key %d" % (number % KEYS), headers={"n": str(number)})
        producer.poll(0)
    assert producer.flush(30) == 0


def transact(bootstrap: str, topic: str, count: int) -> Producer:
    """Transactions of a hundred records, each third aborted; the last one stays open."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"writer of {topic}",
            "batch.num.messages": 20,
        }
    )
    producer.init_transactions(60)
    for number in range(count):
        producer.begin_transaction()
        for record in range(100):
            producer.produce(topic, os.urandom(1000), key=b"key %d" % (record % KEYS))
        if number % 3 == 2:
            assert producer.flush(60) == 0, "or nothing of it would be in the log"
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    producer.begin_transaction()
    producer.produce(topic, b"undecided", key=b"key")
    assert producer.flush(60) == 0
    return producer


def commit_group(bootstrap: str, topic: str, group: str) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    until = time.monotonic() + WAIT_S
    while (message := consumer.poll(0.5)) is None:
        assert time.monotonic() < until, "the group read nothing"
    assert message.error() is None
    consumer.commit(message, asynchronous=False)
    consumer.close()


def kill_under_load(broker: Any, topic: str) -> None:
    """SIGKILL while batches are on their way, so that the tail may be torn."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for _ in range(3000):
        producer.produce(topic, os.urandom(1000))
    producer.poll(0.05)
    broker.kill()
    producer.purge()


def wait_for_compaction(partition: Path) -> None:
    """Until the closed segments together are smaller than one of them was: 50 keys are little."""

    def closed_bytes() -> int:
        return sum(path.stat().st_size for path in sorted(partition.glob("*.log"))[:-1])

    until = time.monotonic() + WAIT_S
    while not 0 < closed_bytes() < SEGMENT_BYTES:
        assert time.monotonic() < until, f"not compacted: {closed_bytes()} bytes"
        time.sleep(0.2)


def fill(broker: Any) -> None:
    for compression in COMPRESSIONS:
        make_topic(broker.bootstrap, compression)
        for idempotent in (True, False):
            settings = {"compression.type": compression, "enable.idempotence": idempotent}
            produce(broker.bootstrap, compression, 1500, **settings)
    compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    make_topic(broker.bootstrap, "compacted", compact)
    produce(broker.bootstrap, "compacted", 6000)
    make_topic(broker.bootstrap, "recompressed", {"compression.type": "zstd"})
    produce(broker.bootstrap, "recompressed", 500, **{"compression.type": "gzip"})
    make_topic(broker.bootstrap, "log-append-time", {"message.timestamp.type": "LogAppendTime"})
    produce(broker.bootstrap, "log-append-time", 500)
    make_topic(broker.bootstrap, "transactions")
    make_topic(broker.bootstrap, "compacted-transactions", compact)
    for topic in ("transactions", "compacted-transactions"):
        transact(broker.bootstrap, topic, 30).abort_transaction(60)
    commit_group(broker.bootstrap, "none", "readers")
    for topic in ("compacted", "compacted-transactions"):
        wait_for_compaction(broker.data / f"{topic}-0")


def test_nothing_is_wrong_with_all_compressions_compaction_and_a_crash(
    kafka_jars: KafkaJars, new_broker: Callable[..., Any]
) -> None:
    broker = new_broker(*SOON)
    fill(broker)
    make_topic(broker.bootstrap, "crashed")
    undecided = transact(broker.bootstrap, "transactions", 4)
    kill_under_load(broker, "crashed")
    broker.start()
    produce(broker.bootstrap, "crashed", 100)
    undecided.abort_transaction(60)
    assert broker.stop() == 0
    for topic in ("transactions", "compacted-transactions"):
        assert list((broker.data / f"{topic}-0").glob("*.txnindex"))
    found = log_dump.faults(kafka_jars, broker.data)
    assert [each for each in found if not COMPACTED_AWAY.search(each)] == []
    assert found, "nothing was compacted"


def end_transaction(end: Callable[[float], None], is_killed: Event) -> None:
    """Commits or aborts; after the kill the outcome is unknown."""
    while True:
        try:
            end(0.5)
        except KafkaException as error:
            if is_killed.is_set():
                return
            if not error.args[0].retriable():
                raise
        else:
            return


def writers(bootstrap: str) -> list[Producer]:
    """Each with its transactional id; what was open under that id is aborted."""
    found = []
    for number in range(WRITERS):
        settings = {"transactional.id": f"writer {number}", "linger.ms": 0, "log_level": 0}
        found.append(Producer({"bootstrap.servers": bootstrap, **settings}))
        found[-1].init_transactions(WAIT_S)
    return found


def transact_until(producer: Producer, is_killed: Event) -> int:
    """Short transactions, each third aborted; returns how many."""
    count = 0
    while not is_killed.is_set():
        producer.begin_transaction()
        producer.produce("crashed", os.urandom(300))
        if count % 3 == 2:
            producer.flush(0.5)
            end_transaction(producer.abort_transaction, is_killed)
        else:
            end_transaction(producer.commit_transaction, is_killed)
        count += 1
    producer.purge()
    return count


@pytest.mark.full
def test_nothing_is_wrong_after_crashes_in_transactions(
    kafka_jars: KafkaJars, new_broker: Callable[..., Any]
) -> None:
    """SIGKILL again and again while transactions begin and end, then torn tails; also those of the
    coordinator's own partitions.
    """
    random = Random(1)
    broker = new_broker("--config", f"transaction.state.log.num.partitions={WRITERS}")
    make_topic(broker.bootstrap, "crashed")
    transactions = 0
    for _ in range(KILLS):
        is_killed = Event()
        with ThreadPoolExecutor(WRITERS) as pool:
            running = [
                pool.submit(transact_until, producer, is_killed)
                for producer in writers(broker.bootstrap)
            ]
            time.sleep(random.uniform(0.5, 1))
            is_killed.set()
            broker.kill()
            transactions += sum(each.result(WAIT_S) for each in running)
        for folder in (*broker.data.glob("__transaction_state-*"), broker.data / "crashed-0"):
            if random.random() < 0.5:
                tear(folder, random)
            if random.random() < 0.3:
                spoil_indexes(folder, random)
        broker.start()
    writers(broker.bootstrap)
    assert broker.stop() == 0
    assert "Traceback" not in broker.said(), broker.said()[-3000:]
    assert transactions > KILLS * WRITERS
    assert log_dump.faults(kafka_jars, broker.data) == []
    states = sorted(broker.data.glob("__transaction_state-*/*.log"))
    files = ",".join(str(path) for path in states if path.stat().st_size)
    said = kafka_jars.run(log_dump.TOOL, "--files", files, "--transaction-log-decoder")
    # Since Apache Kafka 4.4 by their names.
    statuses = set(re.findall(r'"transactionStatus":"(\w+)"', said))
    assert statuses == {
        *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
    }


def test_the_tool_does_find_a_fault_where_there_is_one(
    kafka_jars: KafkaJars, new_broker: Callable[..., Any]
) -> None:
    """So that the test above cannot pass because nothing was looked at."""
    broker = new_broker()
    make_topic(broker.bootstrap, "broken")
    produce(broker.bootstrap, "broken", 200)
    assert broker.stop() == 0
    assert log_dump.faults(kafka_jars, broker.data) == []
    segment = broker.data / "broken-0" / f"{0:020}.log"
    content = bytearray(segment.read_bytes())
    content[200] ^= 0xFF
    segment.write_bytes(content)
    assert log_dump.faults(kafka_jars, broker.data)
