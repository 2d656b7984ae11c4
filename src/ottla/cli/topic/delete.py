"""`ottla topic delete`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from ottla.cli.client import is_internal
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.deletion import delete_all
from ottla.cli.failures import UsageFailed
from ottla.cli.options import AS_JSON, YES, topics_argument

INTERNAL_CONTENT: Final = {
    "__consumer_offsets": "it has the committed offsets of all groups",
    "__transaction_state": "it has the state of all transactional producers",
    "__share_group_state": "it has the positions of all share groups",
    "__cluster_metadata": "it has the cluster's metadata",
}


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
            f"{kept} is an internal topic: {INTERNAL_CONTENT[kept]}.",
            f"To delete it all the same: ottla topic delete {' '.join(names)} --internal",
        )
    connection = cluster.connection
    connection.existing_topics(names)
    begin = connection.admin.delete_topics
    delete_all(connection, "topic", names, begin, with_what="records", yes=yes, as_json=as_json)
