"""A load that sends records, and measures until they are acknowledged."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from ottla.messaging.librdkafka import LibrdkafkaError, explain, rejected
from ottla.messaging.load.meter import Meter

PAYLOADS: Final = 50
LETTERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""As in kafka-producer-perf-test.sh: it can be compressed, but not to nothing."""
POLL_EVERY: Final = 100
FULL_PAUSE_S: Final = 0.05
SAMPLE_S: Final = 0.5
FLUSH_STEP_S: Final = 0.2
FLUSH_WITHIN_S: Final = 60.0
SLEEP_S: Final = 0.005


@dataclass(frozen=True, slots=True)
class Load:
    """What to send. The run ends after `records` or `for_s` seconds, if they are given."""

    topic: str
    value_bytes: int
    keys: int | None
    records: int | None
    for_s: float | None
    rate: float | None


def produce_load(
    settings: Mapping[str, Any], load: Load, meter: Meter, show: Callable[[], None]
) -> bool:
    """Run the load; returns whether Ctrl-C ended it. `show` is called after each sample. Raises
    RejectedSettingsError.
    """
    try:
        producer = Producer(dict(settings))
    except KafkaException as error:
        raise rejected(error, "produce") from error
    is_interrupted = False
    sampling = Sampling(meter, show)
    try:
        send(producer, load, meter, sampling)
        flush(producer, sampling)
    except KeyboardInterrupt:
        is_interrupted = True
        producer.purge()
        producer.flush(FLUSH_STEP_S)
    meter.end(time.monotonic())
    return is_interrupted


class Sampling:
    """Ends a moment of the run whenever it is long enough."""

    def __init__(self, meter: Meter, show: Callable[[], None]) -> None:
        self._meter = meter
        self._show = show
        self._next_s = time.monotonic() + SAMPLE_S

    def at(self, now_s: float) -> None:
        if now_s >= self._next_s:
            self._next_s = now_s + SAMPLE_S
            self._meter.sample(now_s)
            self._show()


def send(producer: Any, load: Load, meter: Meter, sampling: Sampling) -> None:
    """Hand the records to librdkafka until the load ends."""
    value_bytes = load.value_bytes

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            meter.add_error(explain(error))
            return
        meter.add(1, value_bytes)
        # Seconds, from `produce` to the acknowledgement.
        latency_s = message.latency()
        if latency_s is not None:
            meter.add_latency(int(latency_s * 1_000_000))

    payloads = values(value_bytes)
    keys = [None] if load.keys is None else [b"%d" % number for number in range(load.keys)]
    began_s = time.monotonic()
    until_s = None if load.for_s is None else began_s + load.for_s
    sent = 0
    while load.records is None or sent < load.records:
        if sent % POLL_EVERY == 0 or load.rate is not None:
            now_s = time.monotonic()
            if until_s is not None and now_s >= until_s:
                return
            producer.poll(0)
            sampling.at(now_s)
            if load.rate is not None and sent / load.rate > now_s - began_s:
                producer.poll(min(SLEEP_S, sent / load.rate - (now_s - began_s)))
                continue
        try:
            producer.produce(
                load.topic,
                payloads[sent % PAYLOADS],
                keys[sent % len(keys)],
                on_delivery=delivered,
            )
        except BufferError:
            # librdkafka's queue is full: the brokers are slower than this loop.
            producer.poll(FULL_PAUSE_S)
            sampling.at(time.monotonic())
        except KafkaException as error:
            meter.add_error(explain(error.args[0]))
            sent += 1
        else:
            sent += 1


def flush(producer: Any, sampling: Sampling) -> None:
    """Wait until every record is acknowledged or has failed. Raises LibrdkafkaError if
    the brokers refuse the producer.
    """
    until_s = time.monotonic() + FLUSH_WITHIN_S
    try:
        while producer.flush(FLUSH_STEP_S) and time.monotonic() < until_s:
            sampling.at(time.monotonic())
    except KafkaException as error:
        producer.purge()
        raise LibrdkafkaError(f"cannot produce: {explain(error.args[0])}") from error


def values(value_bytes: int) -> list[bytes]:
    """The values that are sent in turn, the same in each run."""
    source = random.Random(1)
    return [bytes(source.choices(LETTERS, k=value_bytes)) for _ in range(PAYLOADS)]
