"""Groups with what they have read: each partition's committed offset, end and lag.

The committed offset of a share group is its start offset: that of the first record that is not done
with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.admin.committed_offsets import Commit, commits_of
from ottla.client.admin.groups import SHARE, Group
from ottla.client.admin.offsets import LATEST, known_offsets
from ottla.client.admin.share_offsets import ShareOffset, share_offsets
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class MemberState:
    """`partitions`: how many it reads."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: int

    @property
    def name(self) -> str:
        """`client-id@host`."""
        return f"{self.client_id}@{self.host.lstrip('/')}"


@dataclass(frozen=True, slots=True)
class ReadPartition:
    """One partition. Numbers are None if they are unknown; `offsets_error` is why the end is."""

    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    offsets_error: str | None
    metadata: str
    member: MemberState | None
    """Who reads it, alone."""

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group with its members and partitions."""

    group: Group
    members: list[MemberState]
    partitions: list[ReadPartition]

    @property
    def lag(self) -> int:
        """Of the partitions of which it is known."""
        return sum(each.lag or 0 for each in self.partitions)


def group_state(client: Client, group: Group) -> GroupState:
    """Of a group that was described."""
    at: Mapping[TopicPartition, Commit] = {}
    shares: Mapping[TopicPartition, ShareOffset] = {}
    if group.type == SHARE:
        shares = share_offsets(client, group.name)
    else:
        at = commits_of(client, group.name)
    members = [MemberState(*each[:4], len(each.assignment)) for each in group.members]
    owners: dict[TopicPartition, MemberState | None] = {}
    for each, member in zip(group.members, members, strict=True):
        for topic_partition in each.assignment:
            # Several members of a share group may read a partition: it is nobody's alone.
            owners[topic_partition] = None if topic_partition in owners else member
    keys = sorted({*at, *shares, *owners})
    leaders = client.metadata(sorted({key.topic for key in keys})).leaders
    (ends,), why = known_offsets(client, [key for key in keys if key in leaders], LATEST)
    partitions = []
    for key in keys:
        commit, end = at.get(key), ends.get(key)
        offset = None if commit is None else commit.offset
        lag = None if offset is None or end is None else max(0, end - offset)
        if key in shares:
            offset, lag, _ = shares[key]
        partitions.append(
            ReadPartition(
                *key,
                offset,
                end,
                lag,
                why.get(key),
                commit.metadata if commit is not None else "",
                owners.get(key),
            )
        )
    return GroupState(group, members, partitions)
