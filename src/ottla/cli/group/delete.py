"""`ottla group delete`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.deletion import delete_all
from ottla.cli.group.existing import existing_groups, no_active_members
from ottla.cli.options import AS_JSON, YES, groups_argument
from ottla.client.admin.groups import delete_group


@command()
@groups_argument()
@YES
@AS_JSON
@cluster_options
def delete(cluster: Cluster, groups: Sequence[str], yes: bool, as_json: bool) -> None:
    """Delete groups with their committed offsets. Asks first, unless --yes."""
    client = cluster.client
    found = existing_groups(client, groups)
    for group in found.values():
        no_active_members(group)
    delete = partial(delete_group, client)
    delete_all("group", list(found), delete, "committed offsets", yes=yes, as_json=as_json)
