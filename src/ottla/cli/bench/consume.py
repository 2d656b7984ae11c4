"""`ottla bench consume`."""

from __future__ import annotations

import click

from ottla.cli.bench.consume_load import consume_load
from ottla.cli.bench.run import FOR, RECORDS, duration, end
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.options import AS_JSON, topic_argument
from ottla.cli.rows import emit


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
    connection = cluster.connection
    found = connection.existing_topics([topic])
    for_s = duration(records, for_s) if follow else for_s
    meter, is_interrupted = consume_load(
        connection, found, records=records, for_s=for_s, follow=follow, quiet=as_json
    )
    emit(meter.measured(topic, f"Consumed from {topic}"), as_json=as_json)
    end(meter, is_interrupted)
