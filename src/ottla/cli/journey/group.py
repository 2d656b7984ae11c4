"""`ottla journey --group`: what the group's coordinator says of it now."""

from __future__ import annotations

from typing import Any

from ottla.cli.context import Cluster
from ottla.journey.why_not_read import GroupNow, MemberNow, why_not_read

Document = dict[str, Any]


def add_asked_group(document: Document, group: str, cluster: Cluster) -> None:
    """Adds `asked_group`. Raises Failed if the group's coordinator does not answer."""
    # Imported late: only this option needs librdkafka.
    from ottla.cli.group.description import described_groups, state_name

    found = described_groups(cluster.connection, [group]).get(group)
    place = (document["topic"], document["partition"])
    now = None
    if found is not None:
        members = [
            MemberNow(
                member.member_id,
                member.client_id,
                member.host,
                any(
                    (each.topic, each.partition) == place
                    for each in (member.assignment.topic_partitions if member.assignment else ())
                ),
            )
            for member in found.members
        ]
        now = GroupNow(state_name(found.state), bool(found.is_simple_consumer_group), members)
    document["asked_group"] = why_not_read(document, group, now)
