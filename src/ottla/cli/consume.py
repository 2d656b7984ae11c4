"""`ottla consume`: prints the records of topics, up to their end or continuously."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from ottla.cli.command import command
from ottla.cli.complete import complete_group, complete_start
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import existing_topics, partitions_of
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.options import topics_argument
from ottla.cli.progress import Watch
from ottla.cli.records.schema_registry import REGISTRY, Decoder, client_of
from ottla.cli.screen import note, write_bytes
from ottla.cli.value_types import MAX_INT32, Time, WholeNumber
from ottla.client.admin.offsets import end_offsets, first_offsets, offsets_at
from ottla.client.client import Client
from ottla.client.metadata import Topic
from ottla.client.topic_partition import TopicPartition
from ottla.messaging.format import format_renderer
from ottla.messaging.positions import parse_start
from ottla.messaging.reader import Reader
from ottla.messaging.rendering import Render, Shown, render_json, text_renderer
from ottla.messaging.selection import Newest, both, key_matcher, matcher
from ottla.messaging.start import Start, start_offsets
from ottla.wording.plural import plural

T = TypeVar("T")


@command()
@topics_argument()
@click.option(
    "--group",
    "-g",
    metavar="NAME",
    shell_complete=complete_group,
    help="Read as a member of this group: start at its committed offsets, and commit.",
)
@click.option(
    "--from",
    "from_",
    metavar="WHERE",
    shell_complete=complete_start,
    help="beginning (default), end, a time (2026-01-31T12:00, ms) or an age (15m, 2h). "
    "With --group, only for partitions without a committed offset.",
)
@click.option(
    "--until",
    "until_ms",
    type=Time(),
    help="Stop before the first record of this time or age, as in --from.",
)
@click.option(
    "--partition",
    "-p",
    type=WholeNumber(0, MAX_INT32),
    multiple=True,
    help="Read only this partition. Repeatable.",
)
@click.option(
    "--offset", "-o", type=WholeNumber(), help="Start at this offset; -N is N before the end."
)
@click.option(
    "--until-offset", type=WholeNumber(0), help="Stop before this offset of the --partition."
)
@click.option("--max", "-n", "max_records", type=WholeNumber(1), help="Stop after N records.")
@click.option(
    "--last", type=WholeNumber(1), help="The newest N records of all partitions, by time."
)
@click.option("--key", metavar="TEXT", help="Only records with this key.")
@click.option("--grep", metavar="REGEX", help="Only records whose key or value has a match (RE2).")
@click.option("--follow", "-f", is_flag=True, help="At the end, wait for more until Ctrl-C.")
@click.option("--keys", "-k", is_flag=True, help="Show keys.")
@click.option("--headers", "-H", is_flag=True, help="Show headers.")
@click.option("--offsets", is_flag=True, help="Show TOPIC-PARTITION@OFFSET.")
@click.option("--times", is_flag=True, help="Show times, in UTC.")
@click.option(
    "--format",
    "format_",
    metavar="FORMAT",
    help="Print records as kcat does: '%t-%p@%o %k: %s\\n'. %T is the time, %h the headers.",
)
@REGISTRY
@click.option("--json", "as_json", is_flag=True, help="Print each record as a line of JSON.")
@cluster_options
def consume(
    cluster: Cluster,
    topics: Sequence[str],
    group: str | None,
    from_: str | None,
    until_ms: int | None,
    partition: Sequence[int],
    offset: int | None,
    until_offset: int | None,
    max_records: int | None,
    last: int | None,
    key: str | None,
    grep: str | None,
    follow: bool,
    keys: bool,
    headers: bool,
    offsets: bool,
    times: bool,
    format_: str | None,
    registry: str | None,
    as_json: bool,
) -> None:
    """Print the records of topics, from the beginning to the current end."""
    check_together(topics, group, from_, partition, offset)
    ending = {"--until": until_ms, "--until-offset": until_offset, "--last": last}
    check_ending(ending, group, from_, partition, offset, follow)
    shown = Shown(offsets=offsets, times=times, headers=headers, keys=keys)
    check_one_form(shown, format_, as_json)
    start = parse_start(from_ or "beginning", int(time.time() * 1000))
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
    client = cluster.client
    found = existing_topics(client, topics, "Read")
    reader = Reader(
        client,
        cluster.settings,
        group=group,
        start=start,
        follow=follow,
        matches=matches,
        tell=note,
    )
    newest = None if last is None else Newest(last)
    try:
        if group is not None:
            reader.subscribe(list(found))
        else:
            begins, ends = choose(client, found, partition, offset, start)
            if until_ms is not None:
                ends = offsets_at(client, ends, until_ms)
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
        note(f"Read {plural(reader.records, 'record')}.")


def decoding(use: Callable[[Any], T], decoder: Decoder) -> Callable[[Any], T]:
    """The same for decoded records."""
    return lambda message: use(decoder.decoded(message))


def check_together(
    topics: Sequence[str],
    group: str | None,
    from_: str | None,
    partition: Sequence[int],
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
    if offset is not None and (len(topics) != 1 or len(partition) != 1):
        raise UsageFailed(
            "--offset needs --partition.",
            f"For example: ottla consume {topics[0]} --partition 0 --offset {offset}",
        )


def check_ending(
    ending: Mapping[str, object],
    group: str | None,
    from_: str | None,
    partition: Sequence[int],
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
    if name == "--until-offset" and len(partition) != 1:
        raise UsageFailed("--until-offset needs --partition: offsets belong to one partition.")


def check_one_form(shown: Shown, format_: str | None, as_json: bool) -> None:
    """Reject two forms of output."""
    columns = shown != Shown()
    if format_ is not None and (columns or as_json):
        other = "--json" if as_json else "--keys, --headers, --offsets and --times"
        raise UsageFailed(f"--format replaces {other}: give one of them.")


def choose(
    client: Client,
    found: Mapping[str, Topic],
    wanted: Sequence[int],
    offset: int | None,
    start: Start,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Where to start in each partition, and where each one ends now."""
    chosen = partitions_of(found, wanted)
    ends = end_offsets(client, chosen)
    if offset is None:
        return start_offsets(client, start, chosen), ends
    ((partition, end),) = ends.items()
    first = first_offsets(client, chosen)[partition]
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
