"""`ottla bench consume`."""

from __future__ import annotations

import time
from functools import partial

import click

from ottla.cli.bench.chart import Chart, show_measured
from ottla.cli.bench.run import FOR, RECORDS, duration, end
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import existing_topics, partitions_of
from ottla.cli.options import AS_JSON, topic_argument
from ottla.cli.rows import emit
from ottla.messaging.load.consume import consume_load
from ottla.messaging.load.meter import Meter


@command()
@topic_argument()
@RECORDS
@FOR
@click.option(
    "--follow",
    "-f",
    is_flag=True,
    help="Read new records, and measure how old they are on arrival.",
)
@AS_JSON
@cluster_options
def consume(
    cluster: Cluster,
    topic: str,
    records: int | None,
    for_s: float | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Read a topic from its beginning as fast as possible, up to its current end.

    With --follow, reads new records for 10 seconds, and measures the time from their timestamps to
    their arrival: both clocks matter.
    """
    found = existing_topics(cluster.client, [topic], "Read")
    for_s = duration(records, for_s) if follow else for_s
    meter = Meter(time.monotonic())
    with Chart(f"consuming from {topic}", meter, wanted=not as_json) as chart:
        is_interrupted = consume_load(
            cluster.client,
            cluster.settings,
            partitions_of(found, None),
            meter,
            chart.show,
            records=records,
            for_s=for_s,
            follow=follow,
        )
    show = partial(show_measured, title=f"Consumed from {topic}")
    emit(meter.measured(topic), as_json=as_json, show=show)
    end(meter, is_interrupted)
