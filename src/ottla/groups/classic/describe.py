"""A group as administrators see it."""

from __future__ import annotations

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.requests import DescribedGroup, ListedGroup
from ottla.groups.classic.state import STABLE

CLASSIC_TYPE = "classic"


def describe(group: ClassicGroup) -> DescribedGroup:
    """Metadata and protocol are returned only for a stable group: before, nothing is chosen."""
    protocol = group.protocol_name if group.state is STABLE else None
    return DescribedGroup(
        group.group_id,
        group.state.value,
        group.protocol_type or "",
        protocol or "",
        tuple(member.described(protocol) for member in group.members.values()),
    )


def listed(group: ClassicGroup) -> ListedGroup:
    return ListedGroup(group.group_id, group.protocol_type or "", group.state.value, CLASSIC_TYPE)
