"""`ottla group list`."""

from __future__ import annotations

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.group.existing import NO_GROUPS
from ottla.cli.options import AS_JSON, FILTER
from ottla.cli.rows import emit, row
from ottla.client.admin.groups import listed_groups
from ottla.messaging.patterns import name_filter


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
    rows = [ListedGroup(*each) for each in listed_groups(cluster.client) if matches(each.group)]
    none = NO_GROUPS if filter_ is None else f"No group's name matches {filter_}."
    emit(rows, as_json=as_json, none=none)
