"""`ottla topic delete`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.deletion import delete_all
from ottla.cli.existing import existing_topics
from ottla.cli.failures import UsageFailed
from ottla.cli.options import AS_JSON, YES, topics_argument
from ottla.client.admin.topics import INTERNAL_TOPICS, delete_topic, is_internal


@command()
@topics_argument()
@YES
@click.option("--internal", is_flag=True, help="Allow deleting an internal topic.")
@AS_JSON
@cluster_options
def delete(
    cluster: Cluster, topics: Sequence[str], yes: bool, internal: bool, as_json: bool
) -> None:
    """Delete topics with all their records. Asks first, unless --yes."""
    names = list(dict.fromkeys(topics))
    kept = next(filter(is_internal, names), None)
    if kept is not None and not internal:
        raise UsageFailed(
            f"{kept} is an internal topic: {INTERNAL_TOPICS[kept]}.",
            f"To delete it all the same: ottla topic delete {' '.join(names)} --internal",
        )
    client = cluster.client
    existing_topics(client, names)
    delete_all("topic", names, partial(delete_topic, client), "records", yes=yes, as_json=as_json)
