"""`ottla consume`: prints the records of topics, up to their end or continuously."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ottla.cli.client import Connection, connect
from ottla.cli.complete import complete_group
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.offsets import Partition, end_offsets, first_offsets
from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, ClientConfig, TopicNames
from ottla.cli.positions import Start, parse_start, start_offsets
from ottla.cli.progress import Watch
from ottla.cli.reading import Reader
from ottla.cli.rendering import Render, Shown, render_json, text_renderer
from ottla.cli.screen import note, write_bytes

Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        "-g",
        metavar="NAME",
        help="Read as a member of this group: start at its committed offsets, and commit.",
        autocompletion=complete_group,
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="WHERE",
        help="beginning (default), end, a time (2026-01-31T12:00, ms) or an age (15m, 2h). "
        "With --group, only for partitions without a committed offset.",
    ),
]
OfPartition = Annotated[
    list[int] | None,
    typer.Option(
        "--partition", "-p", min=0, metavar="N", help="Read only this partition. Repeatable."
    ),
]
Offset = Annotated[
    int | None,
    typer.Option(
        "--offset", "-o", metavar="N", help="Start at this offset; -N is N before the end."
    ),
]
Most = Annotated[
    int | None, typer.Option("--max", "-n", min=1, metavar="N", help="Stop after N records.")
]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="At the end, wait for more until Ctrl-C.")
]
Keys = Annotated[bool, typer.Option("--keys", "-k", help="Show keys.")]
Headers = Annotated[bool, typer.Option("--headers", "-H", help="Show headers.")]
Offsets = Annotated[bool, typer.Option("--offsets", help="Show TOPIC-PARTITION@OFFSET.")]
Times = Annotated[bool, typer.Option("--times", help="Show times, in UTC.")]
JsonOut = Annotated[bool, typer.Option("--json", help="Print each record as a line of JSON.")]


def consume(
    topics: TopicNames,
    group: Group = None,
    from_: From = None,
    partition: OfPartition = None,
    offset: Offset = None,
    max_records: Most = None,
    follow: Follow = False,
    keys: Keys = False,
    headers: Headers = False,
    offsets: Offsets = False,
    times: Times = False,
    as_json: JsonOut = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Print the records of topics, from the beginning to the current end."""
    check_together(topics, group, from_, partition, offset)
    start = parse_start(from_ or "beginning", int(time.time() * 1000))
    shown = Shown(offsets=offsets, times=times, headers=headers, keys=keys)
    for_terminal = sys.stdout.isatty()
    render = render_json if as_json else text_renderer(shown, for_terminal=for_terminal)
    connection = connect(bootstrap, client_config)
    found = connection.existing_topics(topics)
    reader = Reader(connection, group=group, start=start, follow=follow)
    try:
        if group is not None:
            reader.subscribe(list(found))
        else:
            begins, ends = choose(connection, found, partition, offset, start)
            reader.assign(begins, ends)
        read(reader, render, max_records, bar=not for_terminal and not follow)
    finally:
        reader.close()
    if sys.stderr.isatty():
        note(f"Read {reader.records:,} record{'' if reader.records == 1 else 's'}.")


def check_together(
    topics: Sequence[str],
    group: str | None,
    from_: str | None,
    partition: Sequence[int] | None,
    offset: int | None,
) -> None:
    """Reject options that contradict each other."""
    if group is not None and (partition or offset is not None):
        raise UsageFailed(
            "--group cannot be combined with --partition or --offset.",
            f"To move the group first: ottla group reset {group} --topic {topics[0]} --to-offset N",
        )
    if group == "":
        raise UsageFailed("--group is empty; give a name.")
    if offset is not None and from_ is not None:
        raise UsageFailed("--offset and --from exclude each other.")
    if offset is not None and (len(topics) != 1 or len(partition or ()) != 1):
        raise UsageFailed(
            "--offset needs --partition.",
            f"For example: ottla consume {topics[0]} --partition 0 --offset {offset}",
        )


def choose(
    connection: Connection,
    found: dict[str, Any],
    wanted: Sequence[int] | None,
    offset: int | None,
    start: Start,
) -> tuple[dict[Partition, int], dict[Partition, int]]:
    """Where to start in each partition, and where each one ends now."""
    chosen: list[Partition] = []
    for name, topic in found.items():
        for number in wanted or sorted(topic.partitions):
            if number not in topic.partitions:
                last = len(topic.partitions) - 1
                raise Failed(f"topic {name!r} has partitions 0 to {last}, not {number}.")
            chosen.append((name, number))
    ends = end_offsets(connection, chosen)
    if offset is None:
        return start_offsets(connection, start, chosen), ends
    ((partition, end),) = ends.items()
    first = first_offsets(connection, chosen)[partition]
    at = max(end + offset, first) if offset < 0 else offset
    if not first <= at <= end:
        raise Failed(
            f"partition {partition[1]} of {partition[0]!r} has no offset {offset}: "
            f"allowed are {first} to {end}, the end."
        )
    return {partition: at}, ends


def read(reader: Reader, render: Render, most: int | None, *, bar: bool) -> None:
    """Write each batch with one call, with a progress bar if records go to a file or a pipe."""
    with Watch("Consuming", None, wanted=bar) as watch:

        def show(records: Sequence[Any], _before: int) -> None:
            write_bytes(b"".join(map(render, records)))
            watch.at(reader.done_offsets, reader.total_offsets)

        reader.run(show, most)
