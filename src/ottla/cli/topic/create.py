"""`ottla topic create`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from confluent_kafka.admin import NewTopic

from ottla.cli.client import pairs
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.options import (
    AS_JSON,
    PARTITIONS,
    REPLICATION_FACTOR,
    TOPIC_CONFIG,
    topics_argument,
)
from ottla.cli.plural import plural
from ottla.cli.rows import emit, row
from ottla.cli.screen import say
from ottla.cli.setting_units import unit_hint_for
from ottla.cli.topic.assignment import EXAMPLE, read_assignment
from ottla.cli.topic.description import described_topics, replication_factor_of


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
    connection = cluster.connection
    existing = connection.topics()
    there = [name for name in topics if name in existing]
    if there and not if_not_exists:
        present = plural(len(existing[there[0]].partitions), "partition")
        raise Failed(
            f"topic {there[0]!r} already exists, with {present}.",
            f"To change it: ottla topic alter {there[0]} --partitions N. Or add --if-not-exists.",
        )
    new = [name for name in dict.fromkeys(topics) if name not in existing]
    if new:
        futures = connection.admin.create_topics(
            [new_topic(name, partitions, replication_factor, assignment, settings) for name in new],
            request_timeout=connection.answer_timeout_s,
        )
        with unit_hint_for(settings):
            for name, future in futures.items():
                connection.wait(future, f"create topic {name!r}")
        connection.settled_topics(dict.fromkeys(new, len(assignment) or partitions or 1))
    made = described_topics(connection, list(dict.fromkeys(topics)))
    emit(
        [
            Created(each.name, len(each.partitions), replication_factor_of(each), each.name in new)
            for each in made
        ],
        as_json=as_json,
    )


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


def new_topic(
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    assignment: list[list[int]],
    settings: dict[str, str],
) -> Any:
    if assignment:
        count = len(assignment)
        return NewTopic(name, count, replica_assignment=assignment, config=settings)
    # -1: the broker's default (KIP-464).
    return NewTopic(name, partitions or -1, replication_factor or -1, config=settings)
