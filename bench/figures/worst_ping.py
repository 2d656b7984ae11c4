"""The worst ping: how long a small request waits at most for what others ask of the broker."""

import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from random import Random

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bench import rdkafka
from bench.brokers import Broker, running
from bench.figures.cold_reads import ColdConsumer
from bench.measure import Bench, ClientError, Measure
from bench.members import Members
from bench.pinging import EVERY_MS, Pings
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.records.build import encode_records, finish_batch
from ottla.records.compression import Compression
from ottla.records.header import MAGIC, BatchHeader
from ottla.records.record import Record
from ottla.testing.broker_request import ask_broker

IDLE_SECONDS = 3.0
READ_BYTES = 1_000_000_000
READ_RECORD_BYTES = 1000
CONSUMERS = 8
ANSWER_BYTES = 8 << 20
MEMBERS = 500
REBALANCES = 5
COMPACTED = 1_500_000
"""Records of COMPACTED_BYTES."""
COMPACTED_BYTES = 100
KEYS = 100_000
COMPACTION_SECONDS = 120
COLD_SECONDS = 8.0
GZIP_RECORDS = 60_000
"""Of 1,000 hex digits, which gzip makes a bit more than half as long. Ottla takes batches of at
most 64 MiB, decompressed.
"""
GZIPS = 3
CREATED = 1_000
TOPICS = 9_000
LISTED = 20
"""How often all topics are asked for."""
WAIT_SECONDS = 120.0
AFTER_SECONDS = 1.0
"""What a load leaves to be done in the background is done then."""
SETTINGS = {
    "group.initial.rebalance.delay.ms": "3000",  # so that all members join the first generation
    "log.cleaner.backoff.ms": "100",
}


class WorstPing:
    """One connection pings all the time; the loads come one after the other."""

    name = "worst-ping"
    runs = 3
    settings = (
        f"another process asks for the API versions on one connection, again {EVERY_MS} ms after"
        f" each response; the longest wait beside each load, from its begin until"
        f" {AFTER_SECONDS:.0f} s after its end: nothing for {IDLE_SECONDS:.0f} s; {CONSUMERS}"
        f" consumers (rdkafka_performance) that read 1 GB each in answers of {ANSWER_BYTES >> 20}"
        f" MiB; {REBALANCES} rebalances of a classic group of {MEMBERS} members with a connection"
        f" each; compaction of {COMPACTED:,} records of {COMPACTED_BYTES} B with {KEYS:,} keys in"
        f" segments of 16 MiB; a consumer that reads the 1 GB from the disk for"
        f" {COLD_SECONDS:.0f} s, as for `cold-reads`; {GZIPS} requests, one after the other, of"
        f" one batch of {GZIP_RECORDS:,} records of 1,000 B in gzip; one request"
        f" that creates {CREATED:,} topics of one partition; {LISTED} requests, one after the"
        f" other, for the metadata of all {TOPICS:,} topics. 3 runs"
    )
    measures = (
        Measure("worst ping, nothing beside it", "ms", more_is_better=False),
        *(
            Measure(f"worst ping beside {load}", "ms", more_is_better=False, ratio=1.0)
            for load in (
                f"{CONSUMERS} consumers of 8 MiB answers",
                f"a rebalance of {MEMBERS} members",
                "compaction",
                "cold reads",
                "60 MB of gzip produced",
                f"{CREATED:,} topics created",
                f"metadata of {TOPICS:,} topics",
            )
        ),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        values = []
        with (
            running(contestant, bench.jars, SETTINGS, bench.prefix) as broker,
            Pings(broker.address) as pings,
        ):

            def beside(load: Callable[[], object], times: int = 1) -> None:
                pings.worst_ms()
                for _ in range(times):
                    load()
                time.sleep(AFTER_SECONDS)
                values.append(pings.worst_ms())

            tool, count = bench.rdkafka_performance, bench.amount(READ_BYTES // READ_RECORD_BYTES)
            rdkafka.produce(tool, broker.address, "old", count, READ_RECORD_BYTES)
            beside(lambda: time.sleep(IDLE_SECONDS))
            beside(lambda: read_in_large_answers(tool, broker, count))
            with Members(broker.address, "large", bench.amount(MEMBERS)) as members:
                beside(members.rebalance, REBALANCES)
            write_with_keys(broker, bench.amount(COMPACTED), bench.amount(KEYS))
            beside(lambda: compact(broker))
            beside(lambda: read_from_disk(tool, broker, count))
            batch = gzipped(bench.amount(GZIP_RECORDS))
            create(broker, ["gzip"], {"max.message.bytes": "100000000"})
            beside(lambda: produce(broker, "gzip", batch), GZIPS)
            created = bench.amount(CREATED)
            names = [f"topic-{number}" for number in range(bench.amount(TOPICS))]
            beside(lambda: create(broker, names[:created]))
            for first in range(created, len(names), created):
                create(broker, names[first : first + created])
            wait_for_topics(broker, names)
            beside(lambda: list_topics(broker), LISTED)
        return dict(zip((measure.name for measure in self.measures), values, strict=True))


def read_in_large_answers(tool: Path, broker: Broker, count: int) -> None:
    """All consumers read the first `count` records of topic `old` at once."""
    size = str(ANSWER_BYTES)
    options = [f"fetch.message.max.bytes={size}", f"fetch.max.bytes={size}"]
    options += [f"fetch.min.bytes={size}"]
    given = [part for option in options for part in ("-X", option)]
    with ThreadPoolExecutor(CONSUMERS) as threads:
        reads = [
            threads.submit(rdkafka.consume, tool, broker.address, "old", count, *given)
            for _ in range(CONSUMERS)
        ]
        for each in reads:
            each.result()


def write_with_keys(broker: Broker, count: int, keys: int) -> None:
    """Fill topic `compacted`, which is not compacted yet."""
    create(broker, ["compacted"], {"segment.bytes": str(16 << 20)})
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 50, "log_level": 0})
    value = b"x" * COMPACTED_BYTES
    for number in range(count):
        while True:
            try:
                producer.produce("compacted", value, b"key-%d" % (number % keys), 0)
                break
            except BufferError:  # the queue is full
                producer.poll(0.1)
    if producer.flush(WAIT_SECONDS):
        raise ClientError("not all records with keys were acknowledged")


def compact(broker: Broker) -> None:
    """Turn compaction on, and wait until two thirds of the log are gone."""
    before = log_bytes(broker, "compacted")
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "compacted", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(WAIT_SECONDS)
    limit = time.monotonic() + COMPACTION_SECONDS
    while log_bytes(broker, "compacted") > before // 3:
        if time.monotonic() > limit:
            raise ClientError(f"the topic was not compacted in {COMPACTION_SECONDS} s")
        time.sleep(0.1)


def log_bytes(broker: Broker, topic: str) -> int:
    """The size of the segments of partition 0."""
    return sum(
        path.stat().st_size
        for path in broker.folder.rglob(f"{topic}-0/*.log")
        if path.exists()  # compaction removes them meanwhile
    )


def read_from_disk(tool: Path, broker: Broker, count: int) -> None:
    with ColdConsumer(tool, broker, count) as consumer:
        time.sleep(COLD_SECONDS)
        consumer.rate()


@cache
def gzipped(records: int) -> bytes:
    """A batch of records of 1,000 hex digits. The lowest level, so that it does not take long."""
    random = Random(1)
    values = [Record(0, 1, None, random.randbytes(500).hex().encode()) for _ in range(records)]
    packer = zlib.compressobj(1, wbits=31)
    packed = packer.compress(encode_records(values, range(records), 1)) + packer.flush()
    header = BatchHeader(
        base_offset=0, size_bytes=0, leader_epoch=-1, magic=MAGIC, crc=0,
        attributes=Compression.gzip, last_offset_delta=records - 1, base_timestamp=1,
        max_timestamp=1, producer_id=-1, producer_epoch=-1, base_sequence=-1, count=records,
    )  # fmt: skip
    return finish_batch(header, packed)


def produce(broker: Broker, topic: str, batch: bytes) -> None:
    """One request with this batch, acks=all."""
    build = messages_of(0, 9, "request")
    partition = build.PartitionProduceData(index=0, records=batch)
    data = build.TopicProduceData(name=topic, partition_data=(partition,))
    request = build.ProduceRequest(acks=-1, timeout=60_000, topic_data=(data,))
    answer = ask_broker(broker.address, request, WAIT_SECONDS)
    error = answer.responses[0].partition_responses[0].error_code
    if error is not ErrorCode.none:
        raise ClientError(f"the batch was refused: {error.name}")


def create(broker: Broker, names: Sequence[str], config: dict[str, str] | None = None) -> None:
    """One request for topics of one partition; returns when they are created."""
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    topics = [NewTopic(name, 1, 1, config=config or {}) for name in names]
    made = admin.create_topics(topics, operation_timeout=WAIT_SECONDS, request_timeout=WAIT_SECONDS)
    for each in made.values():
        each.result(WAIT_SECONDS)


def wait_for_topics(broker: Broker, names: Sequence[str]) -> None:
    """Until all have a leader."""
    limit = time.monotonic() + WAIT_SECONDS
    while list_topics(broker) < len(names):
        if time.monotonic() > limit:
            raise ClientError(f"not all topics had a leader after {WAIT_SECONDS:.0f} s")
        time.sleep(1)


def list_topics(broker: Broker) -> int:
    """Asks for the metadata of all topics; returns how many have a leader."""
    build = messages_of(3, 9, "request")
    request = build.MetadataRequest(topics=None, allow_auto_topic_creation=False)
    answer = ask_broker(broker.address, request, WAIT_SECONDS)
    return sum(topic.partitions[0].leader_id >= 0 for topic in answer.topics)
