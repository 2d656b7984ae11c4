"""`ottla consume`: prints the records of topics, up to their end or continuously."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import typer

from ottla.cli.client import Connection, connect
from ottla.cli.complete import complete_group, complete_start
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.offsets import Partition, end_offsets, first_offsets, offsets_at
from ottla.cli.positions import Start, parse_start, parse_time, start_offsets
from ottla.cli.progress import Watch
from ottla.cli.records.format import format_renderer
from ottla.cli.records.reader import Reader
from ottla.cli.records.rendering import Render, Shown, render_json, text_renderer
from ottla.cli.records.schema_registry import Decoder, Registry, client_of
from ottla.cli.records.selection import Newest, both, key_matcher, matcher
from ottla.cli.screen import note, write_bytes
from ottla.cli.typer_options import DEFAULT_BOOTSTRAP, Bootstrap, ClientConfig, TopicNames

T = TypeVar("T")

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
        autocompletion=complete_start,
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
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Print records as kcat does: '%t-%p@%o %k: %s\\n'. %T is the time, %h the headers.",
    ),
]
Last = Annotated[
    int | None,
    typer.Option(
        "--last", min=1, metavar="N", help="The newest N records of all partitions, by time."
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="WHEN",
        help="Stop before the first record of this time or age, as in --from.",
    ),
]
UntilOffset = Annotated[
    int | None,
    typer.Option(
        "--until-offset", min=0, metavar="N", help="Stop before this offset of the --partition."
    ),
]
Grep = Annotated[
    str | None,
    typer.Option(
        "--grep", metavar="REGEX", help="Only records whose key or value has a match (RE2)."
    ),
]
OfKey = Annotated[
    str | None, typer.Option("--key", metavar="TEXT", help="Only records with this key.")
]
JsonOut = Annotated[bool, typer.Option("--json", help="Print each record as a line of JSON.")]


def consume(
    topics: TopicNames,
    group: Group = None,
    from_: From = None,
    until: Until = None,
    partition: OfPartition = None,
    offset: Offset = None,
    until_offset: UntilOffset = None,
    max_records: Most = None,
    last: Last = None,
    key: OfKey = None,
    grep: Grep = None,
    follow: Follow = False,
    keys: Keys = False,
    headers: Headers = False,
    offsets: Offsets = False,
    times: Times = False,
    format_: Format = None,
    registry: Registry = None,
    as_json: JsonOut = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Print the records of topics, from the beginning to the current end."""
    check_together(topics, group, from_, partition, offset)
    ending = {"--until": until, "--until-offset": until_offset, "--last": last}
    check_ending(ending, group, from_, partition, offset, follow)
    shown = Shown(offsets=offsets, times=times, headers=headers, keys=keys)
    check_one_form(shown, format_, as_json)
    now_ms = int(time.time() * 1000)
    start = parse_start(from_ or "beginning", now_ms)
    until_ms = None if until is None else parse_time("--until", until, now_ms)
    for_terminal = sys.stdout.isatty()
    if format_ is not None:
        render = format_renderer(format_, for_terminal=for_terminal)
    else:
        render = render_json if as_json else text_renderer(shown, for_terminal=for_terminal)
    matches = None if grep is None else matcher(grep)
    if registry is not None:
        decoder = Decoder(client_of(registry))
        render, matches = decoding(render, decoder), matches and decoding(matches, decoder)
    # The key as it is stored, also where a registry decodes it.
    matches = both(None if key is None else key_matcher(key), matches)
    connection = connect(bootstrap, client_config)
    found = connection.existing_topics(topics)
    reader = Reader(connection, group=group, start=start, follow=follow, matches=matches)
    newest = None if last is None else Newest(last)
    try:
        if group is not None:
            reader.subscribe(list(found))
        else:
            begins, ends = choose(connection, found, partition, offset, start)
            if until_ms is not None:
                ends = offsets_at(connection, ends, until_ms)
            if until_offset is not None:
                ends = {key: min(end, until_offset) for key, end in ends.items()}
            if last is not None and matches is None:
                begins = {key: max(begin, ends[key] - last) for key, begin in begins.items()}
            # Without a bound, records that arrive meanwhile may be shown too.
            reader.assign(begins, ends, bounded=any(each is not None for each in ending.values()))
        read(reader, render, max_records, newest, bar=not for_terminal and not follow)
    finally:
        reader.close()
    if newest is not None:
        write_bytes(b"".join(map(render, newest.in_order())))
    elif sys.stderr.isatty():
        note(f"Read {reader.records:,} record{'' if reader.records == 1 else 's'}.")


def decoding(use: Callable[[Any], T], decoder: Decoder) -> Callable[[Any], T]:
    """The same for decoded records."""
    return lambda message: use(decoder.decoded(message))


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


def check_ending(
    ending: Mapping[str, object],
    group: str | None,
    from_: str | None,
    partition: Sequence[int] | None,
    offset: int | None,
    follow: bool,
) -> None:
    """Reject ends that contradict each other or the rest."""
    given = [name for name, value in ending.items() if value is not None]
    if len(given) > 1:
        raise UsageFailed(f"{given[0]} and {given[1]} exclude each other.")
    if not given:
        return
    (name,) = given
    against = {"--group": group is not None, "--follow": follow}
    if name == "--last":
        against |= {"--from": from_ is not None, "--offset": offset is not None}
    for other, is_given in against.items():
        if is_given:
            raise UsageFailed(f"{name} and {other} exclude each other.")
    if name == "--until-offset" and len(partition or ()) != 1:
        raise UsageFailed("--until-offset needs --partition: offsets belong to one partition.")


def check_one_form(shown: Shown, format_: str | None, as_json: bool) -> None:
    """Reject two forms of output."""
    columns = shown != Shown()
    if format_ is not None and (columns or as_json):
        other = "--json" if as_json else "--keys, --headers, --offsets and --times"
        raise UsageFailed(f"--format replaces {other}: give one of them.")


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


def read(
    reader: Reader, render: Render, most: int | None, newest: Newest | None, *, bar: bool
) -> None:
    """Write each batch with one call (or keep the newest), with a progress bar if records go to a
    file or a pipe.
    """
    with Watch("Consuming", None, wanted=bar) as watch:

        def show(records: Sequence[Any], _before: int) -> None:
            if newest is not None:
                newest.add(records)
            else:
                write_bytes(b"".join(map(render, records)))
            watch.at(reader.done_offsets, reader.total_offsets)

        reader.run(show, most)
