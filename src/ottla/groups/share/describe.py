"""A share group as administrators see it. Kafka's ShareGroup.asDescribedGroup."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.groups.share.group import ShareGroup
from ottla.groups.share.member import Member
from ottla.groups.share.settings import ASSIGNOR

SHARE_TYPE: Final = "share"
"""Of ListGroups: the group's type, and the type of its protocol."""


class DescribedShareGroup(NamedTuple):
    """The answer of ShareGroupDescribe."""

    group: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[Member, ...]


def describe(group: ShareGroup) -> DescribedShareGroup:
    return DescribedShareGroup(
        group.group_id,
        group.state.value,
        group.epoch,
        group.target_epoch,
        ASSIGNOR,
        tuple(group.members.values()),
    )
