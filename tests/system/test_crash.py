"""SIGKILL under load, again and again, with torn tails made by hand between kill and start.

After each start: every record that was acknowledged and is still in the file is served, in order,
once; no torn one is; what groups committed is there. OTTLA_SEED takes a printed seed again.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.system.torn_tails import active_segment, spoil_indexes, tear, whole_records
from tests.system.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record

pytestmark = pytest.mark.timeout(480)

PARTITIONS = 3
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
WAIT_S = 60
OFTEN = (
    *("--config", "log.segment.bytes=1048576"),
    *("--config", "log.flush.offset.checkpoint.interval.ms=150"),
    *("--config", "log.flush.scheduler.interval.ms=100"),
    *("--config", "offsets.topic.num.partitions=3"),
)


@dataclass
class Expected:
    """What one partition must hold: the records known to lie in its files, by offset."""

    values: dict[int, bytes] = field(default_factory=dict)
    acknowledged: dict[int, bytes] = field(default_factory=dict)


class Load:
    """An idempotent producer that notes what was acknowledged, where."""

    def __init__(self, broker: Any, random: Random, number: int) -> None:
        self.acknowledged: dict[int, dict[int, bytes]] = defaultdict(dict)
        self._random, self._number = random, number
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "compression.type": random.choice(COMPRESSIONS),
                "linger.ms": random.choice((0, 1, 5)),
                "batch.num.messages": random.choice((1, 10, 1000)),
                "log_level": 0,
            }
        )
        self._sent = 0

    def run(self, duration_s: float) -> None:
        until = time.monotonic() + duration_s
        while time.monotonic() < until:
            for _ in range(50):
                self._send()
            self._producer.poll(0.002)

    def _send(self) -> None:
        self._sent += 1
        value = b"%d:%d:" % (self._number, self._sent) + os.urandom(self._random.randrange(400))
        partition = self._random.randrange(PARTITIONS)

        def told(error: Any, message: Any) -> None:
            if error is None:
                self.acknowledged[message.partition()][message.offset()] = message.value()

        try:
            self._producer.produce("load", value, partition=partition, on_delivery=told)
        except BufferError:
            self._producer.poll(0.01)

    def finish(self) -> None:
        """All is sent and acknowledged."""
        assert self._producer.flush(WAIT_S) == 0

    def abandon(self) -> None:
        """Takes in the answers that came before the kill; drops what had none.

        The client ends here: it would send again what it had on its way, purged or not.
        """
        self._producer.poll(0)
        self._producer.purge()
        self._producer.flush(5)
        del self._producer


def make_topic(broker: Any) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("load", PARTITIONS, 1)])["load"].result(WAIT_S)


def read_all(broker: Any, counts: dict[int, int], note: str) -> dict[int, list[Any]]:
    """The messages of all partitions from start to end, which must be this many of each."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    try:
        partitions = [TopicPartition("load", partition, 0) for partition in counts]
        for each in partitions:
            ends = consumer.get_watermark_offsets(each, timeout=WAIT_S)
            assert ends == (0, counts[each.partition]), f"{note}: of partition {each.partition}"
        consumer.assign(partitions)
        messages: dict[int, list[Any]] = {partition: [] for partition in counts}
        until = time.monotonic() + WAIT_S
        while any(len(messages[partition]) < count for partition, count in counts.items()):
            found = {partition: len(each) for partition, each in messages.items()}
            assert time.monotonic() < until, f"{found} of {counts} came"
            for message in consumer.consume(10_000, timeout=0.05):
                assert message.error() is None, message.error()
                messages[message.partition()].append(message)
        behind = consumer.poll(0)
        assert behind is None, (behind.error(), behind.partition(), behind.offset(), behind.value())
        return messages
    finally:
        consumer.close()


def commit(broker: Any, group: str, offsets: dict[int, int]) -> None:
    wanted = [TopicPartition("load", partition, offset) for partition, offset in offsets.items()]
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    until = time.monotonic() + WAIT_S
    while True:
        try:
            done = consumer.commit(offsets=wanted, asynchronous=False)
            assert all(each.error is None for each in done)
            break
        except KafkaException:  # the coordinator may still be loading
            assert time.monotonic() < until
            time.sleep(0.1)
    consumer.close()


def committed(broker: Any, group: str) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    asked = [TopicPartition("load", partition) for partition in range(PARTITIONS)]
    found = consumer.committed(asked, timeout=WAIT_S)
    consumer.close()
    return {each.partition: each.offset for each in found}


def take_stock(broker: Any, expected: dict[int, Expected], load: Load, note: str) -> None:
    """After the kill, before any tearing: all that was acknowledged is in the files."""
    for partition, each in expected.items():
        lying = whole_records(broker.data / f"load-{partition}")
        for offset, value in load.acknowledged[partition].items():
            assert lying.get(offset) == value, f"{note}: acknowledged {partition}:{offset} is lost"
        for offset, value in each.values.items():
            assert lying.get(offset) == value, f"{note}: {partition}:{offset} has changed"


def check(broker: Any, expected: dict[int, Expected], note: str) -> None:
    """What is served is what lay whole in the files, in order, once."""
    counts = {partition: len(each.values) for partition, each in expected.items()}
    found = read_all(broker, counts, note)
    for partition, each in expected.items():
        messages = found[partition]
        assert [message.offset() for message in messages] == list(range(len(each.values))), note
        assert [message.value() for message in messages] == list(each.values.values()), note
        # One producer's records stand in the order in which it sent them, none twice.
        last: dict[bytes, int] = defaultdict(int)
        for message in messages:
            number, sent, _ = message.value().split(b":", 2)
            assert int(sent) > last[number], f"{note}: {partition}:{message.offset()}"
            last[number] = int(sent)


@pytest.mark.parametrize("kills", [6, pytest.param(30, marks=pytest.mark.full)])
def test_killed_again_and_again(new_broker: Callable[..., Any], kills: int) -> None:
    seed = int(os.environ.get("OTTLA_SEED", time.time_ns() % 1_000_000))
    print(f"OTTLA_SEED={seed}")
    random = Random(seed)
    broker = new_broker(*OFTEN)
    make_topic(broker)
    expected = {partition: Expected() for partition in range(PARTITIONS)}
    kept: dict[str, dict[int, int]] = {}
    for number in range(kills):
        note = f"OTTLA_SEED={seed}, kill {number}"
        load = Load(broker, random, number)
        load.run(random.uniform(0.1, 0.3))
        if number % 4 == 0:
            load.finish()
            kept[f"group-{number}"] = offsets = {p: number + p for p in range(PARTITIONS)}
            commit(broker, f"group-{number}", offsets)
        broker.kill()
        load.abandon()
        take_stock(broker, expected, load, note)
        for partition, each in expected.items():
            folder = broker.data / f"load-{partition}"
            if random.random() < 0.6:
                note += f"; {partition}: {tear(folder, random)}"
            if random.random() < 0.3:
                spoil_indexes(folder, random)
            each.values = whole_records(folder)
        broker.start()
        check(broker, expected, note)
        for group in random.sample(sorted(kept), min(2, len(kept))):
            assert committed(broker, group) == kept[group], f"{note}: {group}"
    for group, offsets in kept.items():
        assert committed(broker, group) == offsets, group
    assert sum(len(each.values) for each in expected.values()) > 1000
    assert broker.stop() == 0
    assert "Traceback" not in broker.said(), broker.said()[-3000:]


def test_the_producer_goes_on_over_a_kill_and_nothing_is_there_twice(
    new_broker: Callable[..., Any],
) -> None:
    """The same producer, before and after: what it sends again is known (idempotence)."""
    random = Random(5)
    broker = new_broker(*OFTEN)
    make_topic(broker)
    load = Load(broker, random, 1)
    for _ in range(4):
        load.run(0.2)
        broker.kill()
        load.run(0.05)
        broker.start()
    load.run(0.2)
    load.finish()
    expected = {partition: Expected() for partition in range(PARTITIONS)}
    for partition, each in expected.items():
        each.values = dict(sorted(load.acknowledged[partition].items()))
    check(broker, expected, "one producer over four kills")
    assert broker.stop() == 0


def test_a_topic_made_again_does_not_begin_at_the_old_log_start(
    new_broker: Callable[..., Any],
) -> None:
    """The checkpoint files name a partition, not a topic id. After a crash the entries of a deleted
    topic must not cut the records of the new one with its name (Kafka's LogManager.asyncDelete
    writes the files before the name is free).
    """
    broker = new_broker(*OFTEN)
    log_starts = broker.data / "log-start-offset-checkpoint"
    values = [b"new %d" % number for number in range(10)]
    with Wire(broker.bootstrap) as wire:
        _create_again(wire, "again")
        _write(wire, "again", [b"old"] * 1_000)
        _delete_records(wire, "again", 900)
        until = time.monotonic() + WAIT_S
        while "again 0 900" not in log_starts.read_text().splitlines():
            assert time.monotonic() < until
            time.sleep(0.01)
        _delete(wire, "again")
        _create_again(wire, "again")
        _write(wire, "again", values)
        broker.kill()
    broker.start()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "again"})
    consumer.assign([TopicPartition("again", 0, 0)])
    assert consumer.get_watermark_offsets(TopicPartition("again", 0), timeout=WAIT_S) == (0, 10)
    found = consumer.consume(len(values), timeout=WAIT_S)
    assert [(each.offset(), each.value()) for each in found] == list(enumerate(values))
    consumer.close()
    assert broker.stop() == 0


def _create_again(wire: Wire, topic: str) -> None:
    build = wire.request(19, 7)
    wanted = build.CreatableTopic(
        name=topic, num_partitions=1, replication_factor=1, assignments=(), configs=()
    )
    answer = wire.ask(build.CreateTopicsRequest(topics=(wanted,), timeout=30_000))
    assert answer.topics[0].error_code is ErrorCode.none


def _delete(wire: Wire, topic: str) -> None:
    build = wire.request(20, 5)
    answer = wire.ask(build.DeleteTopicsRequest(topic_names=(topic,), timeout=30_000))
    assert answer.responses[0].error_code is ErrorCode.none


def _write(wire: Wire, topic: str, values: list[bytes]) -> None:
    build = wire.request(0, 9)
    now_ms = time.time_ns() // 1_000_000
    records = build_batch([Record(n, now_ms, None, value) for n, value in enumerate(values)])
    data = build.PartitionProduceData(index=0, records=records)
    topic_data = (build.TopicProduceData(name=topic, partition_data=(data,)),)
    answer = wire.ask(build.ProduceRequest(acks=-1, timeout=30_000, topic_data=topic_data))
    assert answer.responses[0].partition_responses[0].error_code is ErrorCode.none


def _delete_records(wire: Wire, topic: str, before: int) -> None:
    build = wire.request(21, 2)
    partition = build.DeleteRecordsPartition(partition_index=0, offset=before)
    topics = (build.DeleteRecordsTopic(name=topic, partitions=(partition,)),)
    answer = wire.ask(build.DeleteRecordsRequest(topics=topics, timeout=30_000))
    assert answer.topics[0].partitions[0].error_code is ErrorCode.none


def test_a_consumer_that_was_ahead_of_a_crash_reads_what_comes_after_it(
    new_broker: Callable[..., Any],
) -> None:
    """A power failure loses records that a consumer has read; others get their offsets. The leader
    epoch has moved, so the consumer finds out where its log ends, and skips none of them (KIP-320).
    """
    broker = new_broker()
    with Wire(broker.bootstrap) as wire:
        _create_again(wire, "lost")
        for number in range(100):
            _write(wire, "lost", [b"before %d" % number])
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "ahead",
            "auto.offset.reset": "earliest",
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition("lost", 0, 0)])
    read: list[bytes] = []
    while len(read) < 100:
        read += [each.value() for each in consumer.consume(100 - len(read), timeout=WAIT_S)]
    broker.kill()
    segment = active_segment(broker.data / "lost-0")
    content = segment.read_bytes()
    segment.write_bytes(content[: len(content) // 2])
    kept = len(whole_records(broker.data / "lost-0"))
    assert 40 < kept < 60
    broker.start()
    after = [b"after %d" % number for number in range(100 - kept)]
    with Wire(broker.bootstrap) as wire:
        for value in after:
            _write(wire, "lost", [value])
    found: list[bytes] = []
    until = time.monotonic() + WAIT_S
    while len(found) < len(after):
        assert time.monotonic() < until, f"only {len(found)} of {len(after)} new records came"
        found += [each.value() for each in consumer.consume(100, timeout=0.1) if not each.error()]
    assert found == after
    consumer.close()
