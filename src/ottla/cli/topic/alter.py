"""`ottla topic alter`."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import existing_topics
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.name_values import pairs
from ottla.cli.options import AS_JSON, PARTITIONS, TOPIC_CONFIG, UNSET_CONFIG, topic_argument
from ottla.cli.rows import emit
from ottla.cli.screen import note
from ottla.cli.topic.description import show_topic
from ottla.client.admin.configs import alter_settings
from ottla.client.admin.setting_units import unit_hint_for
from ottla.client.admin.topic_states import topic_states
from ottla.client.admin.topics import add_partitions
from ottla.wording.plural import plural


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
    client = cluster.client
    present = len(existing_topics(client, [topic])[topic].partitions)
    if settings or unset:
        with unit_hint_for(settings):
            alter_settings(client, "topic", topic, settings, unset)
    if partitions is not None and partitions != present:
        if partitions < present:
            raise Failed(
                f"topic {topic!r} has {plural(present, 'partition')}; partitions cannot be "
                f"removed, so --partitions must be {present} or more, not {partitions}."
            )
        add_partitions(client, topic, partitions)
        note("Note: keyed records may now go to a different partition than before.")
    (state,) = topic_states(client, existing_topics(client, [topic]))
    emit(state, as_json=as_json, show=show_topic)
