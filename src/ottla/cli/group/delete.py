"""`ottla group delete`."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.deletion import delete_all
from ottla.cli.group.description import existing_groups, no_active_members
from ottla.cli.options import AS_JSON, YES, groups_argument


@command()
@groups_argument()
@YES
@AS_JSON
@cluster_options
def delete(cluster: Cluster, groups: Sequence[str], yes: bool, as_json: bool) -> None:
    """Delete groups with their committed offsets. Asks first, unless --yes."""
    connection = cluster.connection
    found = existing_groups(connection, groups)
    for name, description in found.items():
        no_active_members(name, description)
    begin = connection.admin.delete_consumer_groups
    what = "committed offsets"
    delete_all(connection, "group", list(found), begin, with_what=what, yes=yes, as_json=as_json)
