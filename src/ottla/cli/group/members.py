"""`ottla group members`: who is in a group, and which partitions each member reads."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.group.existing import NO_GROUPS, chosen_groups
from ottla.cli.options import AS_JSON, groups_argument
from ottla.cli.rows import column, emit, only_json, row, show_rows
from ottla.client.admin.groups import Group
from ottla.client.admin.partitions import by_topic
from ottla.wording.plural import plural
from ottla.wording.spans import spans


@row
class Assigned:
    """The partitions of a topic that a member reads."""

    topic: str
    partitions: list[int]

    def __str__(self) -> str:
        return f"{self.topic}:{spans(self.partitions)}"


@row
class Member:
    member_id: str = only_json()
    instance_id: str | None = only_json()
    client_id: str = column("client")
    host: str = column(cell=lambda each: each.host.lstrip("/"))
    instance: str = column(is_optional=True, in_json=False)
    assignment: list[Assigned] = column(
        "partitions", lambda each: " ".join(map(str, each.assignment)) or None
    )
    id: str = column("member id", in_json=False)


@row
class GroupMembers:
    """The group's members by client id, each with its partitions by topic."""

    group: str
    state: str
    assignor: str | None
    members: list[Member]

    def show(self) -> None:
        title = f"{self.group}: {self.state}, {plural(len(self.members), 'member')}"
        if self.assignor:
            title += f", assignor {self.assignor}"
        show_rows(self.members, title=title, like=Member)


@command()
@groups_argument(required=False)
@AS_JSON
@cluster_options
def members(cluster: Cluster, groups: Sequence[str], as_json: bool) -> None:
    """Show the members of groups with their partitions."""
    found = chosen_groups(cluster.client, groups)
    emit(
        [group_members(each) for each in found.values()],
        as_json=as_json,
        none=NO_GROUPS,
    )


def group_members(group: Group) -> GroupMembers:
    members = sorted(group.members, key=lambda each: (each.client_id, each.member_id))
    return GroupMembers(
        group.name,
        group.state,
        group.assignor,
        [
            Member(
                each.member_id,
                each.instance_id,
                each.client_id,
                each.host,
                each.instance_id or "",
                [
                    Assigned(topic, sorted(partitions))
                    for topic, partitions in sorted(by_topic(each.assignment).items())
                ],
                each.member_id,
            )
            for each in members
        ],
    )
