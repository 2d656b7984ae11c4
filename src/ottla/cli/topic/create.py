"""`ottla topic create`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import existing_topics
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.name_values import pairs
from ottla.cli.options import (
    AS_JSON,
    PARTITIONS,
    REPLICATION_FACTOR,
    TOPIC_CONFIG,
    topics_argument,
)
from ottla.cli.rows import emit, row
from ottla.cli.screen import say
from ottla.cli.topic.assignment import EXAMPLE, read_assignment
from ottla.client.admin.setting_units import unit_hint_for
from ottla.client.admin.topics import (
    DEFAULT,
    NewTopic,
    create_topics,
    known_topics,
    replication_factor_of,
)
from ottla.wording.plural import plural


@row
class Created:
    """A topic that there is now; `created`: by this command."""

    topic: str
    partitions: int
    replication_factor: int
    created: bool

    def show(self) -> None:
        done = "Created topic" if self.created else "Already exists: topic"
        say(
            f"{done} {self.topic}: {plural(self.partitions, 'partition')}, "
            f"replication factor {self.replication_factor}."
        )


@command()
@topics_argument()
@PARTITIONS
@REPLICATION_FACTOR
@click.option(
    "--assign",
    metavar="BROKERS",
    help="The brokers of each partition, such as 1:2,2:3 (the first is the preferred leader).",
)
@TOPIC_CONFIG
@click.option("--if-not-exists", is_flag=True, help="Do not fail if the topic exists.")
@AS_JSON
@cluster_options
def create(
    cluster: Cluster,
    topics: Sequence[str],
    partitions: int | None,
    replication_factor: int | None,
    assign: str | None,
    config: Sequence[str],
    if_not_exists: bool,
    as_json: bool,
) -> None:
    """Create topics. Options that are not given use the broker's defaults (num.partitions).

    Retention counts from the timestamps of the records: to load records older than it (by default
    seven days) give --config retention.ms=-1, or they are removed soon.
    """
    settings = pairs("--config", config)
    assignment = assignment_of(assign, partitions, replication_factor)
    client = cluster.client
    names = list(dict.fromkeys(topics))
    existing = known_topics(client, names)
    there = [name for name in names if name in existing]
    if there and not if_not_exists:
        present = plural(len(existing[there[0]].partitions), "partition")
        raise Failed(
            f"topic {there[0]!r} already exists, with {present}.",
            f"To change it: ottla topic alter {there[0]} --partitions N. Or add --if-not-exists.",
        )
    new = [name for name in names if name not in there]
    if new:
        numbers = partitions or DEFAULT, replication_factor or DEFAULT
        with unit_hint_for(settings):
            create_topics(client, [NewTopic(name, *numbers, assignment, settings) for name in new])
    made = existing_topics(client, names)
    rows = [
        Created(name, len(each.partitions), replication_factor_of(each), name in new)
        for name, each in made.items()
    ]
    emit(rows, as_json=as_json)


def assignment_of(
    text: str | None, partitions: int | None, replication_factor: int | None
) -> list[list[int]]:
    """The brokers of each partition; empty if not given."""
    if text is None:
        return []
    if partitions is not None or replication_factor is not None:
        raise UsageFailed(
            "--assign sets the number of partitions and replicas: leave out --partitions and "
            "--replication-factor.",
            EXAMPLE,
        )
    return read_assignment(text)
