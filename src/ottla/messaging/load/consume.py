"""A load that reads records, and with `follow` measures their age."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaException,
)
from confluent_kafka import (
    TopicPartition as PartitionAt,
)

from ottla.client.admin.offsets import end_offsets, first_offsets
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.messaging.consumer_events import is_end
from ottla.messaging.librdkafka import LibrdkafkaError, failure, quiet, rejected
from ottla.messaging.load.meter import Meter
from ottla.messaging.load.produce import Sampling
from ottla.messaging.reader import Interruption

BATCH_RECORDS: Final = 5000
POLL_S: Final = 0.1
STALL_TIMEOUT_S: Final = 15.0


def consume_load(
    client: Client,
    settings: Mapping[str, Any],
    partitions: Sequence[TopicPartition],
    meter: Meter,
    show: Callable[[], None],
    *,
    records: int | None,
    for_s: float | None,
    follow: bool,
) -> bool:
    """Read partitions from the beginning to the current end, or with `follow` what comes from now
    on; returns whether Ctrl-C ended it. `show` is called after each sample. Raises
    LibrdkafkaError and RefusedError.
    """
    ends = end_offsets(client, partitions)
    begins = ends if follow else first_offsets(client, partitions)
    left = {} if follow else {key: end for key, end in ends.items() if end > begins[key]}
    consumer = consumer_of(settings)
    is_interrupted = False
    try:
        consumer.assign([PartitionAt(*key, begins[key]) for key in (left or begins)])
        with Interruption() as interruption:
            sampling = Sampling(meter, show)
            until_s = None if for_s is None else time.monotonic() + for_s
            last_record_s = time.monotonic()
            while follow or left:
                events = consumer.consume(most(records, meter), POLL_S)
                now_s = time.monotonic()
                if events:
                    last_record_s = now_s
                    count(events, left, meter, with_age=follow)
                elif not follow and now_s - last_record_s > STALL_TIMEOUT_S:
                    raise LibrdkafkaError(
                        f"no records arrived for {STALL_TIMEOUT_S:g} s; read {meter.records:,}."
                    )
                sampling.at(now_s)
                is_interrupted = interruption.wanted
                if is_interrupted or (until_s is not None and now_s >= until_s):
                    break
                if records is not None and meter.records >= records:
                    break
        meter.end(time.monotonic())
    except KafkaException as error:
        raise failure(error, "consume") from error
    finally:
        consumer.close()
    return is_interrupted


def consumer_of(settings: Mapping[str, Any]) -> Any:
    """Raises RejectedSettingsError."""
    own = {
        # A consumer needs a group id. Without commits nobody sees this one.
        "group.id": f"ottla-bench-{uuid4()}",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    try:
        return Consumer(own | quiet(settings))
    except KafkaException as error:
        raise rejected(error, "consume") from error


def most(records: int | None, meter: Meter) -> int:
    return BATCH_RECORDS if records is None else min(BATCH_RECORDS, records - meter.records)


def count(
    events: list[Any], left: dict[TopicPartition, int], meter: Meter, *, with_age: bool
) -> None:
    """Count the records of one poll; partitions that are read to their ends leave `left`."""
    now_ms = time.time_ns() // 1_000_000
    found = size_bytes = 0
    latest: dict[tuple[str, int], int] = {}  # plain tuples: one for each record
    for event in events:
        if event.error() is not None:
            if is_end(event):
                left.pop(TopicPartition(event.topic(), event.partition()), None)
            continue
        found += 1
        size_bytes += len(event.value() or b"") + len(event.key() or b"")
        latest[event.topic(), event.partition()] = event.offset()
        if with_age:
            kind, at_ms = event.timestamp()
            if kind != TIMESTAMP_NOT_AVAILABLE:
                meter.add_latency((now_ms - at_ms) * 1000)
    meter.add(found, size_bytes)
    for key, offset in ((TopicPartition(*key), at) for key, at in latest.items()):
        if offset + 1 >= left.get(key, offset + 2):
            left.pop(key, None)
