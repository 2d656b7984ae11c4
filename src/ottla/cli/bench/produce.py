"""`ottla bench produce`."""

from __future__ import annotations

import time
from functools import partial
from typing import Final

import click

from ottla.cli.bench.chart import Chart, show_measured
from ottla.cli.bench.run import FOR, RECORDS, duration, end
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import UsageFailed
from ottla.cli.options import AS_JSON, topic_argument
from ottla.cli.records.producing import (
    ACKS,
    COMPRESSION,
    CREATE,
    count_partitions,
    sending_settings,
)
from ottla.cli.rows import emit
from ottla.cli.value_types import Number, Size, WholeNumber
from ottla.messaging.librdkafka import quiet
from ottla.messaging.load.meter import Meter
from ottla.messaging.load.produce import Load, produce_load
from ottla.wording.sizes import size_text

MAX_RECORD_BYTES: Final = 100_000_000


@command()
@topic_argument()
@RECORDS
@FOR
@click.option(
    "--size",
    "size_bytes",
    type=Size(),
    default="1kB",
    help="The size of each value, such as 100B, 1kB.",
)
@click.option(
    "--rate", type=Number(0.1), metavar="N", help="Records per second. Default: no limit."
)
@click.option("--keys", type=WholeNumber(1), help="Give the records N different keys, in turn.")
@COMPRESSION
@ACKS
@CREATE
@AS_JSON
@cluster_options
def produce(
    cluster: Cluster,
    topic: str,
    records: int | None,
    for_s: float | None,
    size_bytes: int,
    rate: float | None,
    keys: int | None,
    compression: str,
    acks: str,
    create: bool,
    as_json: bool,
) -> None:
    """Produce records as fast as possible, and measure until each is acknowledged.

    Stops after --records, or after 10 seconds. The topic keeps the records.
    """
    if size_bytes > MAX_RECORD_BYTES:
        raise UsageFailed(f"--size must be at most 100MB, not {size_text(size_bytes)}.")
    count_partitions(cluster.client, topic, create)
    settings = {
        **sending_settings(compression, acks),
        "message.max.bytes": MAX_RECORD_BYTES * 2,
        **quiet(cluster.settings),
    }
    load = Load(topic, size_bytes, keys, records, duration(records, for_s), rate)
    meter = Meter(time.monotonic())
    with Chart(f"producing to {topic}", meter, wanted=not as_json) as chart:
        is_interrupted = produce_load(settings, load, meter, chart.show)
    show = partial(show_measured, title=f"Produced to {topic}")
    emit(meter.measured(topic), as_json=as_json, show=show)
    end(meter, is_interrupted)
