"""`ottla group list`."""

from __future__ import annotations

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.group.description import NO_GROUPS, state_name
from ottla.cli.options import AS_JSON, FILTER
from ottla.cli.patterns import name_filter
from ottla.cli.rows import emit, row


@row
class ListedGroup:
    group: str
    state: str
    type: str


@command("list")
@FILTER
@AS_JSON
@cluster_options
def list_groups(cluster: Cluster, filter_: str | None, as_json: bool) -> None:
    """List groups with their states."""
    matches = name_filter(filter_)
    rows = [
        ListedGroup(str(each.group_id), state_name(each.state), str(each.type.name).lower())
        for each in cluster.connection.groups()
        if matches(str(each.group_id))
    ]
    emit(rows, as_json=as_json, none=NO_GROUPS)
