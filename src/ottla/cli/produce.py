"""`ottla produce`: sends lines, or JSON lines, to a topic, and accounts for every record."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED, Failed, UsageFailed
from ottla.cli.options import topic_argument
from ottla.cli.progress import Watch
from ottla.cli.records.producing import (
    ACKS,
    COMPRESSION,
    CREATE,
    count_partitions,
    sending_settings,
)
from ottla.cli.records.schema_registry import REGISTRY, Encoder, client_of
from ottla.cli.screen import note, say, write
from ottla.cli.value_types import MAX_INT32, Seconds, WholeNumber
from ottla.client.permission_hint import permission_hint
from ottla.messaging.jsonlines import Headers, LineError, Outgoing
from ottla.messaging.librdkafka import quiet
from ottla.messaging.lines import (
    Decode,
    iterate_lines,
    json_decoder,
    text_decoder,
)
from ottla.messaging.old_timestamps import OldTimestamps
from ottla.messaging.producer import TopicProducer

POLL_EVERY: Final = 100
MAX_RECORD_BYTES: Final = 1_000_000_000


PARTITIONERS: Final = {
    "murmur2": "murmur2_random",
    "crc32": "consistent_random",
    "random": "random",
}


@command()
@topic_argument()
@click.option(
    "--file",
    "-f",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Read this file instead of standard input.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Read JSON lines, as `ottla consume --json` writes them.",
)
@click.option(
    "--key-separator",
    "-k",
    metavar="TEXT",
    help="The text between key and value; \\t is a tab.",
)
@click.option("--key", metavar="TEXT", help="Use this key for every record.")
@click.option("--null", metavar="TEXT", help="Send a key or value of this text as null.")
@click.option(
    "--header",
    "-H",
    metavar="NAME=VALUE",
    multiple=True,
    help="Add this header to every record. Repeatable.",
)
@click.option(
    "--partition", type=WholeNumber(0, MAX_INT32), help="Send every record to this partition."
)
@click.option("--repartition", is_flag=True, help="With --json: ignore the lines' partitions.")
@COMPRESSION
@ACKS
@click.option(
    "--partitioner",
    type=click.Choice(list(PARTITIONERS)),
    default="murmur2",
    help="How a key's partition is chosen: murmur2, as Java clients do, or crc32, as "
    "librdkafka and confluent-kafka do. All programs of a topic should use the same.",
)
@REGISTRY
@CREATE
@click.option(
    "--timeout", "timeout_s", type=Seconds(1), default=30.0, help="How long to retry a record."
)
@cluster_options
def produce(
    cluster: Cluster,
    topic: str,
    file: Path | None,
    as_json: bool,
    key_separator: str | None,
    key: str | None,
    null: str | None,
    header: Sequence[str],
    partition: int | None,
    repartition: bool,
    compression: str,
    acks: str,
    partitioner: str,
    registry: str | None,
    create: bool,
    timeout_s: float,
) -> int:
    """Send each line of standard input, or of a file, as a record."""
    check_together(as_json, key_separator, key, null, repartition)
    headers, separator = parse_headers(header), parse_separator(key_separator)
    with open_input(file) as stream:
        client = cluster.client
        partitions = count_partitions(client, topic, create)
        if partition is not None and partition >= partitions:
            raise Failed(f"topic {topic!r} has partitions 0 to {partitions - 1}, not {partition}.")
        decode = (
            json_decoder(
                headers=headers,
                partition=partition,
                partitions=partitions,
                repartition=repartition,
            )
            if as_json
            else text_decoder(
                separator=separator, key=key, null=null, headers=headers, partition=partition
            )
        )
        if registry is not None:
            decode = encoding(decode, Encoder(client_of(registry), topic))
        settings = {
            **sending_settings(compression, acks),
            "partitioner": PARTITIONERS[partitioner],
            "message.timeout.ms": int(timeout_s * 1000),
            # The broker's max.message.bytes decides, not the client's limit.
            "message.max.bytes": MAX_RECORD_BYTES,
            **quiet(cluster.settings),
        }
        producer = TopicProducer(topic, settings, timeout_s, note)
        if as_json:  # plain lines have no timestamps
            decode = OldTimestamps(client, topic, note).watching(decode)
        code = send_all(producer, stream, decode, as_json)
        if producer.is_denied:
            note(f"  {permission_hint(client.principal, ('Write', 'topic', topic))}")
        return code


def encoding(decode: Decode, encoder: Encoder) -> Decode:
    """The same, with keys and values encoded."""

    def encoded(line: bytes) -> Outgoing:
        record = decode(line)
        record.key, record.value = encoder.encoded(record.key, record.value)
        return record

    return encoded


def check_together(
    as_json: bool,
    key_separator: str | None,
    key: str | None,
    null: str | None,
    repartition: bool,
) -> None:
    """Reject options that contradict each other."""
    if key is not None and key_separator is not None:
        raise UsageFailed("--key and --key-separator exclude each other.")
    given = {"--key-separator": key_separator, "--key": key, "--null": null}
    if as_json:
        for name, value in given.items():
            if value is not None:
                raise UsageFailed(f"{name} is for plain lines; a JSON line has its own.")
    elif repartition:
        raise UsageFailed("--repartition needs --json.")


def open_input(path: Path | None) -> BinaryIO:
    """The file, or standard input. Raises Failed when it cannot be read."""
    if path is None:
        return sys.stdin.buffer
    try:
        return path.open("rb")
    except OSError as error:
        raise Failed(f"cannot read {path}: {error.strerror}.") from error


def input_bytes(stream: BinaryIO) -> int | None:
    """The size of the input, if known (a file, not a pipe)."""
    status = os.fstat(stream.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def send_all(producer: TopicProducer, stream: BinaryIO, decode: Decode, as_json: bool) -> int:
    """Send every line and account for every record; returns the exit code."""
    if stream.isatty():
        note("Type one record per line. Ctrl-D ends the input.")
    code = 0
    try:
        stopped = send_lines(producer, stream, decode)
        producer.flush()
    except KeyboardInterrupt:
        producer.abandon()
        stopped, code = "interrupted.", EXIT_INTERRUPTED
    if as_json:
        import json

        write(json.dumps(producer.document()) + "\n")
    else:
        say(producer.sentence())
    problems = producer.losses()
    if stopped:
        problems.append(stopped)
    for problem in problems:
        note(f"ottla produce: {problem}")
    return code or (EXIT_FAILED if problems else 0)


def send_lines(producer: TopicProducer, stream: BinaryIO, decode: Decode) -> str | None:
    """Send line by line. Returns the reason if it stopped before the end."""
    interactive = stream.isatty()
    done_bytes, number = 0, 0
    watch: Any
    with Watch("Producing", input_bytes(stream), wanted=not interactive, in_bytes=True) as watch:
        try:
            for line in iterate_lines(stream):
                number += 1
                producer.send(decode(line), number)
                done_bytes += len(line) + 1
                if interactive or number % POLL_EVERY == 0:
                    producer.client.poll(0)
                    watch.at(done_bytes)
        except LineError as error:
            return f"line {number} {error}. This line and all after it were not sent."
        except OSError as error:
            return f"cannot read after line {number}: {error.strerror}."
    return None


def parse_headers(given: Sequence[str] | None) -> Headers:
    """`name=value` words as headers; names may repeat. Raises UsageFailed."""
    found: Headers = []
    for word in given or ():
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageFailed(
                f"--header must be NAME=VALUE, not {word!r}.", "For example: --header source=import"
            )
        found.append((name, value.encode()))
    return found


def parse_separator(given: str | None) -> str | None:
    """The separator, with `\\t` as a tab: a tab is hard to type."""
    if given is None:
        return None
    separator = given.replace("\\t", "\t")
    if not separator:
        raise UsageFailed("--key-separator is empty.", "For example: --key-separator :")
    return separator
