"""The positions of all instances of a mirror, as the target has them."""

from __future__ import annotations

from ottla.client.admin.committed_offsets import commits_of
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.clusters import SideClient
from ottla.mirroring.names import group_of
from ottla.mirroring.position import Position, read_position


def committed_positions(target: SideClient, mirror: str) -> dict[TopicPartition, Position]:
    """By partition at the target. Raises ClientError."""
    with target.asked():
        commits = commits_of(target, group_of(mirror))
    found = {
        each: read_position(
            commit.offset,
            commit.leader_epoch if commit.leader_epoch >= 0 else None,
            commit.metadata,
        )
        for each, commit in commits.items()
    }
    return {each: position for each, position in found.items() if position is not None}
