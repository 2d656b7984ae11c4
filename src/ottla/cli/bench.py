"""`ottla bench`: measures the throughput and latency of a cluster with librdkafka."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ottla.cli.bench_consume import consume_load
from ottla.cli.bench_meter import Meter, show_run
from ottla.cli.bench_produce import Load, produce_load
from ottla.cli.client import connect
from ottla.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED, UsageFailed
from ottla.cli.produce import (
    Acks,
    AcksOption,
    Compression,
    CompressionOption,
    Create,
    count_partitions,
)
from ottla.cli.screen import note, show_json
from ottla.cli.sizes import parse_size
from ottla.cli.typer_options import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, ClientConfig, TopicName

commands = typer.Typer(help="Measure the throughput and latency of a cluster.")

DEFAULT_FOR_S = 10.0
MAX_RECORD_BYTES = 100_000_000

Records = Annotated[
    int | None, typer.Option("--records", "-n", min=1, metavar="N", help="Stop after N records.")
]
For = Annotated[
    float | None,
    typer.Option("--for", min=0.1, metavar="SECONDS", help="Stop after this time."),
]
RecordSize = Annotated[
    str, typer.Option("--size", metavar="SIZE", help="The size of each value, such as 100B, 1kB.")
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", min=0.1, metavar="N", help="Records per second. Default: no limit."),
]
Keys = Annotated[
    int | None,
    typer.Option("--keys", min=1, metavar="N", help="Give the records N different keys, in turn."),
]
FollowNew = Annotated[
    bool,
    typer.Option(
        "--follow", "-f", help="Read new records, and measure how old they are on arrival."
    ),
]


@commands.command()
def produce(
    topic: TopicName,
    records: Records = None,
    for_s: For = None,
    size: RecordSize = "1kB",
    rate: Rate = None,
    keys: Keys = None,
    compression: CompressionOption = Compression.NONE,
    acks: AcksOption = Acks.ALL,
    create: Create = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Produce records as fast as possible, and measure until each is acknowledged.

    Stops after --records, or after 10 seconds. The topic keeps the records.
    """
    value_bytes = parse_size("--size", size)
    if value_bytes > MAX_RECORD_BYTES:
        raise UsageFailed(f"--size must be at most 100MB, not {size}.")
    connection = connect(bootstrap, client_config)
    count_partitions(connection, topic, create)
    settings = {
        "compression.type": compression.value,
        "acks": acks.value,
        "enable.idempotence": acks is Acks.ALL,
        "message.max.bytes": MAX_RECORD_BYTES * 2,
        **connection.settings,
    }
    load = Load(topic, value_bytes, keys, records, duration(records, for_s), rate)
    meter, is_interrupted = produce_load(settings, load, quiet=as_json)
    show(f"Produced to {topic}", topic, meter, as_json=as_json)
    end(meter, is_interrupted)


@commands.command()
def consume(
    topic: TopicName,
    records: Records = None,
    for_s: For = None,
    follow: FollowNew = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Read a topic from its beginning as fast as possible, up to its current end.

    With --follow, reads new records for 10 seconds, and measures the time from their timestamps to
    their arrival: both clocks matter.
    """
    connection = connect(bootstrap, client_config)
    found = connection.existing_topics([topic])
    for_s = duration(records, for_s) if follow else for_s
    meter, is_interrupted = consume_load(
        connection, found, records=records, for_s=for_s, follow=follow, quiet=as_json
    )
    show(f"Consumed from {topic}", topic, meter, as_json=as_json)
    end(meter, is_interrupted)


def duration(records: int | None, for_s: float | None) -> float | None:
    """How long to run: 10 s if nothing limits the run."""
    return DEFAULT_FOR_S if records is None and for_s is None else for_s


def show(did: str, topic: str, meter: Meter, *, as_json: bool) -> None:
    document: dict[str, Any] = {"topic": topic, **meter.document()}
    if as_json:
        show_json(document)
    else:
        show_run(did, document)


def end(meter: Meter, is_interrupted: bool) -> None:
    """Exit with the code of what happened."""
    for reason, count in meter.errors.items():
        note(f"{count:,} not delivered: {reason.rstrip('.')}.")
    if is_interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    if meter.errors:
        raise typer.Exit(EXIT_FAILED)
