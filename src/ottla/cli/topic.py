"""`ottla topic`: create, list, describe, alter and delete topics."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from confluent_kafka.admin import NewPartitions, NewTopic

from ottla.cli.client import Connection, connect, is_internal, pairs
from ottla.cli.configs import alter_configs
from ottla.cli.deletion import delete_all
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.name_filter import Filter, name_filter
from ottla.cli.plural import plural
from ottla.cli.screen import note, say, show_documents, show_json, show_list
from ottla.cli.setting_units import unit_hint_for
from ottla.cli.topic_assignment import EXAMPLE, read_assignment
from ottla.cli.topic_documents import (
    NO_TOPICS,
    described_topics,
    show_topic,
    topic_documents,
    topic_summary,
)
from ottla.cli.topic_offsets import offsets, trim
from ottla.cli.typer_options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    ClientConfig,
    Internal,
    Partitions,
    ReplicationFactor,
    SomeTopicNames,
    TopicConfig,
    TopicName,
    TopicNames,
    UnsetConfig,
    Yes,
)

commands = typer.Typer(help="Create, list, describe, alter, trim and delete topics.")

IfNotExists = Annotated[
    bool, typer.Option("--if-not-exists", help="Do not fail if the topic exists.")
]

Assignment = Annotated[
    str | None,
    typer.Option(
        "--assign",
        metavar="BROKERS",
        help="The brokers of each partition, such as 1:2,2:3 (the first is the preferred leader).",
    ),
]

Sizes = Annotated[
    bool,
    typer.Option("--sizes", help="Show how many offsets and bytes each topic has (one replica)."),
]
DeleteInternal = Annotated[
    bool, typer.Option("--internal", help="Allow deleting an internal topic.")
]
INTERNAL_CONTENT: Final = {
    "__consumer_offsets": "it has the committed offsets of all groups",
    "__transaction_state": "it has the state of all transactional producers",
    "__share_group_state": "it has the positions of all share groups",
    "__cluster_metadata": "it has the cluster's metadata",
}


@commands.command()
def create(
    topics: TopicNames,
    partitions: Partitions = None,
    replication_factor: ReplicationFactor = None,
    assign: Assignment = None,
    config: TopicConfig = None,
    if_not_exists: IfNotExists = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Create topics. Options that are not given use the broker's defaults (num.partitions).

    Retention counts from the timestamps of the records: to load records older than it (by default
    seven days) give --config retention.ms=-1, or they are removed soon.
    """
    settings = pairs("--config", config)
    assignment = assignment_of(assign, partitions, replication_factor)
    connection = connect(bootstrap, client_config)
    existing = connection.topics()
    there = [name for name in topics if name in existing]
    if there and not if_not_exists:
        present = plural(len(existing[there[0]].partitions), "partition")
        raise Failed(
            f"topic {there[0]!r} already exists, with {present}.",
            f"To change it: ottla topic alter {there[0]} --partitions N. Or add --if-not-exists.",
        )
    new = [name for name in dict.fromkeys(topics) if name not in existing]
    futures = (
        connection.admin.create_topics(
            [new_topic(name, partitions, replication_factor, assignment, settings) for name in new],
            request_timeout=connection.answer_timeout_s,
        )
        if new
        else {}
    )
    with unit_hint_for(settings):
        for name, future in futures.items():
            connection.wait(future, f"create topic {name!r}")
    connection.settled_topics(dict.fromkeys(new, len(assignment) or partitions or 1))
    made = described_topics(connection, list(dict.fromkeys(topics)))
    if as_json:
        show_json([{**topic_summary(topic), "created": topic.name in new} for topic in made])
        return
    for topic in made:
        summary = topic_summary(topic)
        done = "Created topic" if topic.name in new else "Already exists: topic"
        say(
            f"{done} {topic.name}: {plural(summary['partitions'], 'partition')}, "
            f"replication factor {summary['replication_factor']}."
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


@commands.command("list")
def list_topics(
    filter_: Filter = None,
    sizes: Sizes = False,
    internal: Internal = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """List topics by name."""
    matches = name_filter(filter_)
    connection = connect(bootstrap, client_config)
    topics = {
        name: topic
        for name, topic in sorted(connection.topics().items())
        if (internal or not is_internal(name)) and matches(name)
    }
    found = sizes_of(connection, topics) if sizes else {}
    rows: list[dict[str, Any]] = []
    for name, topic in topics.items():
        replicas = [len(partition.replicas) for partition in topic.partitions.values()]
        rows.append(
            {
                "topic": name,
                "partitions": len(replicas),
                "replication_factor": max(replicas, default=0),
                **(found[name]._asdict() if sizes else {}),
                "internal": is_internal(name),
            }
        )
    columns = ["topic", "partitions", "replicas", *(["offsets", "size"] if sizes else [])]
    none = NO_TOPICS if filter_ is None else f"No topic's name matches {filter_}."
    show_list(columns, rows, as_json=as_json, none=none)


def sizes_of(connection: Connection, topics: dict[str, Any]) -> dict[str, Any]:
    # Imported late: it needs messages of Kafka's.
    from ottla.cli.topic_sizes import topic_sizes

    return dict(topic_sizes(connection, topics)) if topics else {}


@commands.command()
def describe(
    topics: SomeTopicNames = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Show partitions with their leaders, replicas and offsets, and changed settings."""
    connection = connect(bootstrap, client_config)
    names = list(dict.fromkeys(topics or ()))
    if names:
        connection.existing_topics(names)
    else:
        names = sorted(name for name in connection.topics() if not is_internal(name))
    documents = topic_documents(connection, names)
    show_documents(
        documents,
        show_topic,
        as_json=as_json,
        none=NO_TOPICS,
    )


@commands.command()
def alter(
    topic: TopicName,
    partitions: Partitions = None,
    config: TopicConfig = None,
    unset: UnsetConfig = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Add partitions to a topic, or change its settings."""
    settings = pairs("--config", config)
    if partitions is None and not settings and not unset:
        raise UsageFailed(
            "no change given.",
            f"Give --partitions N, --config NAME=VALUE or --unset NAME: "
            f"ottla topic alter {topic} --partitions 6",
        )
    connection = connect(bootstrap, client_config)
    found = connection.existing_topics([topic])[topic]
    if settings or unset:
        with unit_hint_for(settings):
            alter_configs(connection, "topic", topic, settings, list(unset or ()))
    if partitions is not None and partitions != len(found.partitions):
        add_partitions(connection, topic, len(found.partitions), partitions)
    document = topic_documents(connection, [topic])[0]
    if as_json:
        show_json(document)
    else:
        show_topic(document)


def add_partitions(connection: Connection, topic: str, present: int, wanted: int) -> None:
    if wanted < present:
        raise Failed(
            f"topic {topic!r} has {plural(present, 'partition')}; partitions cannot be removed, "
            f"so --partitions must be {present} or more, not {wanted}."
        )
    future = connection.admin.create_partitions(
        [NewPartitions(topic, wanted)], request_timeout=connection.answer_timeout_s
    )[topic]
    connection.wait(future, f"add partitions to {topic!r}")
    connection.settled_topics({topic: wanted})
    note("Note: keyed records may now go to a different partition than before.")


@commands.command()
def delete(
    topics: TopicNames,
    yes: Yes = False,
    internal: DeleteInternal = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Delete topics with all their records. Asks first, unless --yes."""
    names = list(dict.fromkeys(topics))
    kept = next(filter(is_internal, names), None)
    if kept is not None and not internal:
        raise UsageFailed(
            f"{kept} is an internal topic: {INTERNAL_CONTENT[kept]}.",
            f"To delete it all the same: ottla topic delete {' '.join(names)} --internal",
        )
    connection = connect(bootstrap, client_config)
    connection.existing_topics(names)
    delete_all(
        connection,
        "topic",
        names,
        connection.admin.delete_topics,
        with_what="records",
        yes=yes,
        as_json=as_json,
    )


commands.command()(offsets)
commands.command()(trim)
