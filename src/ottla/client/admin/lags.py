"""How far groups are behind: by topic, and by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.client.admin.committed_offsets import AllCommits, Commit, all_commits
from ottla.client.admin.groups import ListedGroup
from ottla.client.admin.offsets import LATEST, known_offsets
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition

EMPTY: Final = "empty"
"""The state of a group without members."""

CommitsByGroup = Mapping[str, Mapping[TopicPartition, Commit]]


class GroupLag(NamedTuple):
    """How many offsets a group is behind on a topic; records are fewer after compaction."""

    group: str
    topic: str
    lag: int
    partitions: int
    """That the group has committed."""


class Lags(NamedTuple):
    """Of all groups, the worst first. `is_whole`: whether all brokers and leaders responded, and
    none refused.
    """

    lags: list[GroupLag]
    is_whole: bool

    def by_topic(self) -> dict[str, list[GroupLag]]:
        found: defaultdict[str, list[GroupLag]] = defaultdict(list)
        for each in self.lags:
            found[each.topic].append(each)
        return found

    def by_group(self) -> dict[str, list[GroupLag]]:
        found: defaultdict[str, list[GroupLag]] = defaultdict(list)
        for each in self.lags:
            found[each.group].append(each)
        return found


def lags(client: Client) -> Lags:
    """Of all groups of the cluster, for the topics that exist."""
    return lags_of(client, all_commits(client))


def lags_of(client: Client, known: AllCommits) -> Lags:
    """Of groups whose commits are known."""
    wanted = {partition for commits in known.by_group.values() for partition in commits}
    if not wanted:
        return Lags([], not known.unanswered and not known.refused)
    metadata = client.metadata(sorted({partition.topic for partition in wanted}))
    leaders = metadata.leaders
    led = [partition for partition in wanted if leaders.get(partition, -1) >= 0]
    (ends,), why = known_offsets(client, led, LATEST, known=metadata)
    return Lags(computed_lags(known.by_group, ends), not (known.unanswered or known.refused or why))


def computed_lags(by_group: CommitsByGroup, ends: Mapping[TopicPartition, int]) -> list[GroupLag]:
    """The worst first; only of partitions whose end is known."""
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for group, commits in by_group.items():
        for partition, commit in commits.items():
            if partition in ends:
                found[group, partition.topic].append(max(0, ends[partition] - commit.offset))
    rows = [GroupLag(group, topic, sum(each), len(each)) for (group, topic), each in found.items()]
    return sorted(rows, key=lambda row: (-row.lag, row.topic, row.group))


def left_behind(groups: Iterable[ListedGroup], known: Lags) -> list[tuple[str, int]]:
    """The groups without members that are behind, with their lag, the worst first."""
    behind = known.by_group()
    empty = [each.group for each in groups if each.state == EMPTY and each.group in behind]
    found = [(name, sum(each.lag for each in behind[name])) for name in empty]
    return sorted((each for each in found if each[1]), key=lambda each: (-each[1], each[0]))
