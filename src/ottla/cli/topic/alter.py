"""`ottla topic alter`."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka.admin import NewPartitions

from ottla.cli.client import Connection, pairs
from ottla.cli.command import command
from ottla.cli.configs import alter_configs
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.options import AS_JSON, PARTITIONS, TOPIC_CONFIG, UNSET_CONFIG, topic_argument
from ottla.cli.plural import plural
from ottla.cli.rows import emit
from ottla.cli.screen import note
from ottla.cli.setting_units import unit_hint_for
from ottla.cli.topic.description import topic_descriptions


@command()
@topic_argument()
@PARTITIONS
@TOPIC_CONFIG
@UNSET_CONFIG
@AS_JSON
@cluster_options
def alter(
    cluster: Cluster,
    topic: str,
    partitions: int | None,
    config: Sequence[str],
    unset: Sequence[str],
    as_json: bool,
) -> None:
    """Add partitions to a topic, or change its settings."""
    settings = pairs("--config", config)
    if partitions is None and not settings and not unset:
        raise UsageFailed(
            "no change given.",
            f"Give --partitions N, --config NAME=VALUE or --unset NAME: "
            f"ottla topic alter {topic} --partitions 6",
        )
    connection = cluster.connection
    found = connection.existing_topics([topic])[topic]
    if settings or unset:
        with unit_hint_for(settings):
            alter_configs(connection, "topic", topic, settings, unset)
    if partitions is not None and partitions != len(found.partitions):
        add_partitions(connection, topic, len(found.partitions), partitions)
    emit(topic_descriptions(connection, [topic])[0], as_json=as_json)


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
