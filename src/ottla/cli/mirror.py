"""`ottla mirror`: topics of another cluster, exactly once, with the offsets of groups."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from ottla.cli.command import command
from ottla.cli.complete import complete_group
from ottla.cli.context import Cluster, cluster_options, complete_profile, merged
from ottla.cli.failures import EXIT_FAILED, OPTIONS, ClusterOptions, UsageFailed, as_failed
from ottla.cli.options import AS_JSON
from ottla.cli.rows import column, document, row, show_rows
from ottla.cli.screen import note, say, write
from ottla.cli.value_types import MAX_INT16, Seconds, WholeNumber
from ottla.client.errors import ClientError
from ottla.mirroring.spec import (
    MAX_COMMIT_EVERY_S,
    MAX_REFRESH_EVERY_S,
    MIN_COMMIT_EVERY_S,
    MIN_REFRESH_EVERY_S,
)

if TYPE_CHECKING:
    from ottla.mirroring.clusters import Side
    from ottla.mirroring.events import Event
    from ottla.mirroring.group_offsets import Translated
    from ottla.mirroring.mirror import Mirror
    from ottla.mirroring.mirror_file import MirrorFile

SOURCE: Final = ClusterOptions("--source", "--source-config")


@row
class Moved:
    """A partition of a group that was moved."""

    topic: str
    partition: int
    source_offset: int = column("source offset")
    target_offset: int = column("target offset")


@command()
@click.argument(
    "topics",
    metavar="[TOPIC]...",
    nargs=-1,
    help="Names or patterns (RE2) of topics; each must match the whole name. Default: all.",
)
@click.option(
    "--source",
    metavar="PROFILE|HOST:PORT",
    shell_complete=complete_profile,
    help="The cluster to mirror from.",
)
@click.option(
    "--source-config",
    metavar="NAME=VALUE",
    multiple=True,
    help="Any librdkafka setting for the source. Repeatable.",
)
@click.option("--file", "file", metavar="FILE", help="A TOML file with the same settings.")
@click.option(
    "--exclude", metavar="TOPIC", multiple=True, help="Not these topics (RE2). Repeatable."
)
@click.option("--prefix", metavar="TEXT", help="Put before the topics' names at the target.")
@click.option(
    "--groups",
    metavar="GROUP",
    multiple=True,
    shell_complete=complete_group,
    help="Keep up the offsets of these groups (RE2). Repeatable. Default: all.",
)
@click.option("--no-groups", is_flag=True, help="Leave the offsets of groups alone.")
@click.option(
    "--exclude-groups", metavar="GROUP", multiple=True, help="Not these groups (RE2). Repeatable."
)
@click.option(
    "--exclude-setting",
    "exclude_settings",
    metavar="NAME",
    multiple=True,
    help="A topic setting that does not follow the source. Repeatable.",
)
@click.option(
    "--replication-factor",
    "-r",
    type=WholeNumber(1, MAX_INT16),
    help="Of topics that are created. Default: the target's.",
)
@click.option(
    "--into-existing", is_flag=True, help="Also into topics that have other records already."
)
@click.option("--acls", is_flag=True, help="Add the topics' ACLs at the target.")
@click.option("--name", metavar="NAME", help="Keeps several mirrors into one cluster apart.")
@click.option(
    "--instance",
    metavar="NAME",
    help="Processes of one mirror with different names share the work; one with the same name "
    "takes over.",
)
@click.option(
    "--commit-every",
    "commit_every_s",
    type=Seconds(MIN_COMMIT_EVERY_S, MAX_COMMIT_EVERY_S),
    help="The time of one transaction. Default: 0.5 while behind; less once it has caught up.",
)
@click.option(
    "--refresh-every",
    "refresh_every_s",
    type=Seconds(MIN_REFRESH_EVERY_S, MAX_REFRESH_EVERY_S),
    help="How often new topics, partitions and settings are looked for. Default: 10.",
)
@click.option("--once", is_flag=True, help="Stop at the source's current end.")
@click.option(
    "--switch",
    metavar="GROUP",
    shell_complete=complete_group,
    help="Move a group without members over: stop at the current end, and set its offsets.",
)
@AS_JSON
@cluster_options
def mirror(
    cluster: Cluster,
    topics: Sequence[str],
    source: str | None,
    source_config: Sequence[str],
    file: str | None,
    no_groups: bool,
    once: bool,
    switch: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Mirror another Kafka's topics into this one, exactly once, until Ctrl-C.

    Partitions, keys, headers, timestamps and settings are kept, and the offsets of groups are
    translated exactly. Can be stopped and started at any moment.
    """
    if no_groups and options["groups"]:
        raise UsageFailed("--groups and --no-groups exclude each other.")
    found = wanted(file, topics, no_groups, source, options)
    if found.source is None:
        raise UsageFailed("--source is missing.", "For example: ottla mirror --source HOST:PORT")
    # Imported late: what was typed is checked first.
    from ottla.mirroring.mirror import Mirror

    here = side_of(named_cluster(found.source, source_config, SOURCE), "source")
    there = side_of(target_of(cluster, found.target), "target")
    with options_of_the_source():
        # A client checks the address.
        here.client().close()
        if switch is not None:
            check_group(here, switch)
        running = Mirror(found.spec, here, there, printed(as_json))
        try:
            moved = carried_out(running, once=once or switch is not None, switch=switch)
            show_end(running, moved, switch, as_json=as_json)
        finally:
            running.close()
    if (once or switch is not None) and running.losses:
        raise click.exceptions.Exit(EXIT_FAILED)


def wanted(
    file: str | None,
    topics: Sequence[str],
    no_groups: bool,
    source: str | None,
    options: Mapping[str, Any],
) -> MirrorFile:
    """What the file and the options mean together. Raises MirrorFileError."""
    from ottla.mirroring.mirror_file import mirror_of, read_mirror_file

    keys = {} if file is None else read_mirror_file(Path(file))
    given = {**options, "topics": topics, "source": source}
    keys |= {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in given.items()
        if value not in (None, (), False)
    }
    if no_groups:
        keys["groups"] = []
    return mirror_of(keys)


def named_cluster(
    name: str, config: Sequence[str] = (), options: ClusterOptions = OPTIONS
) -> Cluster:
    """A cluster by its profile or its address, which `options` have given. Raises ProfileError."""
    if ":" in name:
        return Cluster(name, config, options=options)
    # Imported late: a cluster that is named by its address needs no profiles.
    from ottla.client.profiles import profiles_file, read_profiles

    profile = read_profiles(profiles_file()).find(name)
    return Cluster(
        profile.bootstrap, merged(config, profile), registry=profile.registry, options=options
    )


@contextmanager
def options_of_the_source() -> Iterator[None]:
    """What fails at the source is told with its options."""
    try:
        yield
    except ClientError as error:
        if error.cluster == "source":
            raise as_failed(error, SOURCE) from error
        raise


def target_of(cluster: Cluster, named: str | None) -> Cluster:
    """The file's target, unless the command line names one."""
    context = click.get_current_context()
    is_typed = any(
        context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        for name in ("bootstrap", "profile")
    )
    return cluster if named is None or is_typed else named_cluster(named)


def side_of(cluster: Cluster, name: str) -> Side:
    """For the mirror. Raises UsageFailed."""
    from ottla.mirroring.clusters import Side

    return Side(cluster.bootstrap, cluster.settings, name)


def check_group(source: Side, group: str) -> None:
    """Before anything is mirrored. Raises ClientError."""
    from ottla.mirroring.group_switch import check_committed, check_empty

    with source.client(note) as client:
        check_committed(client, group)
        check_empty(client, group, "source")


def printed(as_json: bool) -> Callable[[Event], None]:
    """How an event is shown: as a line of JSON, or as a line on standard error."""
    import json

    def tell(event: Event) -> None:
        if as_json:
            write(json.dumps(event.document, ensure_ascii=False) + "\n", flush=True)
        else:
            note(event.text)

    return tell


def carried_out(running: Mirror, *, once: bool, switch: str | None) -> list[Translated] | None:
    """Mirrors to the end that is wanted; what was moved, if a group was."""
    from ottla.messaging.reader import Interruption

    running.begin()
    with Interruption() as interruption:
        before = signal.signal(signal.SIGTERM, interruption.interrupt)
        try:
            until = running.ends() if once else None
            is_done = running.run(lambda: interruption.wanted, until)
            if is_done and switch is not None:
                return running.switch(switch, lambda: interruption.wanted)
        finally:
            signal.signal(signal.SIGTERM, before)
    if is_done:
        running.settle_groups()
    return None


def show_end(
    running: Mirror, moved: list[Translated] | None, switch: str | None, *, as_json: bool
) -> None:
    """The last line, and what was moved."""
    end = running.state(time.monotonic())
    rows = [Moved(*each.partition, each.source, each.target) for each in moved or ()]
    if as_json:
        import json

        last = {**end.document, "event": "stopped"}
        if moved is not None:
            last |= {"group": switch, "moved": document(rows)}
        write(json.dumps(last, ensure_ascii=False) + "\n")
        return
    say(f"{end.text.partition(', ')[0]}, lag {running.progress.lag:,}.")
    if moved is None and switch is not None:
        say(f"Group {switch} was not moved.")
    elif moved is not None:
        show_rows(rows, title=f"Group {switch} continues at the target at", like=Moved)
