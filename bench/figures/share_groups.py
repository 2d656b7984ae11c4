"""Share groups (KIP-932): records of 1 KB that members accept, and how long one is under way."""

import struct
import time
from contextlib import ExitStack
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from bench.brokers import Broker, running
from bench.client_process import ClientProcess
from bench.figures.latency import percentile
from bench.measure import Bench, ClientError, Measure
from bench.topics import create_topic

MEMBERS = (1, 8)
PARTITIONS = 8
RECORDS = 200_000
BYTES = 1000
RATE = 500
"""Records a second, for the latency."""
SECONDS = 15
WARM_UP = 3
WAIT_SECONDS = 180.0
LOOK_SECONDS = 0.05
SETTINGS = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
NOW = struct.Struct(">d")


class ShareGroups:
    """A topic that is read by one member, and by several; then a steady stream for one."""

    name = "share-groups"
    runs = None
    settings = (
        f"{RECORDS:,} records of {BYTES} B in {PARTITIONS} partitions, read and accepted by a share"
        f" group of one member and of eight (confluent-kafka's ShareConsumer with its defaults, a"
        f" process each), from the first record to the last; latency: {RATE} records/s for"
        f" {SECONDS} s (the first {WARM_UP} s left out), acks=all, one member, from the call of"
        f" the producer until the consumer has the record"
    )
    measures = (
        *(
            Measure(f"share consume 1 KB, {count} member{'s' * (count > 1)}", "MB/s", True, 1.0)
            for count in MEMBERS
        ),
        Measure("share latency p50", "ms", more_is_better=False, ratio=1.0),
        Measure("share latency p99", "ms", more_is_better=False, ratio=1.0),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        count = bench.amount(RECORDS)
        values = []
        with running(contestant, bench.jars, SETTINGS, bench.prefix) as broker:
            create_topic(broker.address, "work", PARTITIONS)
            fill(broker, count)
            for members in MEMBERS:
                values.append(read_all(broker, f"group-{members}", members, count))
            create_topic(broker.address, "stream", 1)
            values += stream(broker, SECONDS // 3 if bench.quick else SECONDS)
        return dict(zip((measure.name for measure in self.measures), values, strict=True))


def value(now: float) -> bytes:
    """Of a record that is sent now."""
    return NOW.pack(now) + bytes(BYTES - NOW.size)


def fill(broker: Broker, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 20, "log_level": 0})
    content = value(0.0)
    for number in range(count):
        while True:
            try:
                producer.produce("work", content, partition=number % PARTITIONS)
                break
            except BufferError:  # the queue is full
                producer.poll(0.1)
    if producer.flush(WAIT_SECONDS):
        raise ClientError("not all records were acknowledged")


def begin_at(broker: Broker, group: str, reset: str) -> None:
    entry = ConfigEntry(
        "share.auto.offset.reset", reset, incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(WAIT_SECONDS)


def member(broker: Broker, group: str, topic: str) -> ClientProcess:
    words = [broker.address, topic, group]
    return ClientProcess("a member", "bench.sharing", words)


def read_all(broker: Broker, group: str, members: int, count: int) -> float:
    """All records by a new group of so many members: MB/s from the first to the last record."""
    begin_at(broker, group, "earliest")
    with ExitStack() as stack:
        running = [stack.enter_context(member(broker, group, "work")) for _ in range(members)]
        for each in running:
            each.wait_ready()
        limit = time.monotonic() + WAIT_SECONDS
        while True:
            said = [_reading(each) for each in running]
            got = sum(each.records for each in said)
            if got >= count:
                first = min((each for each in said if each.records), key=lambda each: each.first_at)
                seconds = max(each.last_at for each in said) - first.first_at
                return (count - first.first_records) * BYTES / 1e6 / seconds
            if time.monotonic() > limit:
                raise ClientError(f"the group got {got:,} of {count:,} records")
            time.sleep(LOOK_SECONDS)


class Reading(NamedTuple):
    """What a member has read. The first records are those of its first poll that got any."""

    records: int
    first_records: int
    first_at: float
    last_at: float


def _reading(process: ClientProcess) -> Reading:
    process.tell("count")
    count, first_count, first_at, last_at = process.line().split()
    return Reading(int(count), int(first_count), float(first_at), float(last_at))


def _wait_for(reader: ClientProcess, records: int) -> None:
    limit = time.monotonic() + WAIT_SECONDS
    while _reading(reader).records < records:
        if time.monotonic() > limit:
            raise ClientError("the member did not get all records")
        time.sleep(LOOK_SECONDS)


def stream(broker: Broker, seconds: int) -> tuple[float, float]:
    """p50 and p99 in ms."""
    begin_at(broker, "streaming", "earliest")
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 0, "log_level": 0})
    with member(broker, "streaming", "stream") as reader:
        reader.wait_ready()
        # It is assigned the partition with its second heartbeat, five seconds after the first one.
        producer.produce("stream", value(time.monotonic()))
        _wait_for(reader, 1)
        begin = time.monotonic()
        for number in range(seconds * RATE):
            pause = begin + number / RATE - time.monotonic()
            if pause > 0:
                producer.poll(pause)
            producer.produce("stream", value(time.monotonic()))
        if producer.flush(WAIT_SECONDS):
            raise ClientError("not all records were acknowledged")
        _wait_for(reader, 1 + seconds * RATE)
        reader.tell("times")
        steady = [float(each) for each in reader.line().split()][1 + WARM_UP * RATE :]
    return percentile(steady, 0.5), percentile(steady, 0.99)
