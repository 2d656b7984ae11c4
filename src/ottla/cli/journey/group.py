"""`ottla journey --group`: what the group's coordinator says of it now."""

from __future__ import annotations

from typing import Any

from ottla.cli.context import Cluster
from ottla.client.admin.groups import SHARE, described_groups
from ottla.client.topic_partition import TopicPartition
from ottla.journey.why_not_read import GroupNow, MemberNow, why_not_read

Document = dict[str, Any]


def add_asked_group(document: Document, group: str, cluster: Cluster) -> None:
    """Adds `asked_group`. Raises Failed if the group's coordinator does not answer."""
    found = described_groups(cluster.client, [group]).get(group)
    partition = TopicPartition(document["topic"], document["partition"])
    now = None
    if found is not None:
        members = [
            MemberNow(each.member_id, each.client_id, each.host, partition in each.assignment)
            for each in found.members
        ]
        now = GroupNow(found.state, found.is_simple, members, found.type == SHARE)
    document["asked_group"] = why_not_read(document, group, now)
