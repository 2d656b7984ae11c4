"""`ottla cluster throttle`: limits how fast replicas are copied (KIP-73), and removes limits."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import existing_topics
from ottla.cli.failures import UsageFailed
from ottla.cli.options import AS_JSON, topics_argument
from ottla.cli.rows import emit
from ottla.cli.screen import note, say, show_table
from ottla.cli.value_types import Size
from ottla.client.admin.throttles import Limits, limit, limits, remove_limits
from ottla.wording.sizes import size_text


@command()
@topics_argument(required=False)
@click.option(
    "--rate", "rate_bytes", type=Size(), help="Bytes per second of each broker, such as 10MB."
)
@click.option("--off", is_flag=True, help="Remove every limit.")
@AS_JSON
@cluster_options
def throttle(
    cluster: Cluster, topics: Sequence[str], rate_bytes: int | None, off: bool, as_json: bool
) -> None:
    """Show or change how fast replicas are copied.

    --rate limits the copying of all replicas of the topics, or without topics of what is being
    reassigned now. --off removes all limits.
    """
    if rate_bytes is not None and off:
        raise UsageFailed("--rate and --off exclude each other.")
    if topics and rate_bytes is None:
        raise UsageFailed("topics need --rate.", "For example: --rate 10MB")
    client = cluster.client
    if rate_bytes is not None:
        existing_topics(client, topics)
        if not limit(client, rate_bytes, list(dict.fromkeys(topics))):
            note("No reassignment is under way: the rate applies to no replica yet.")
    elif off:
        remove_limits(client)
    emit(limits(client), as_json=as_json, show=show_limits)


def show_limits(found: Limits) -> None:
    if found.are_none:
        say("Replication is not limited.")
        return
    show_table(
        ["broker", "leader rate", "follower rate"],
        [
            [each.broker, rate_text(each.leader_rate), rate_text(each.follower_rate)]
            for each in found.brokers
        ],
    )
    if found.topics:
        say("")
        show_table(
            ["topic", "limited on leaders", "limited on followers"],
            [[each.topic, each.leader_replicas, each.follower_replicas] for each in found.topics],
        )


def rate_text(rate_bytes: int | None) -> str:
    return "no limit" if rate_bytes is None else f"{size_text(rate_bytes)}/s"
