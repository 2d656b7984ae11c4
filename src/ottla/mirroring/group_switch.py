"""Moves a group over for good: once all that it has read is mirrored, to the exact record.

The offsets are set by a map that is whole. An instance that was killed may have left a transaction
open, which hides what others have written behind it until the target ends it; and a consumer of
the group may have read on meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ottla.client.admin.committed_offsets import Commit, commit_offsets, commits_of
from ottla.client.admin.groups import described_groups
from ottla.client.admin.offsets import end_offsets
from ottla.client.errors import ClientError, reason_of
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import events
from ottla.mirroring.clusters import SideClient
from ottla.mirroring.committed_positions import committed_positions
from ottla.mirroring.events import Event, Tell
from ottla.mirroring.group_offsets import EMPTY, NOT_IN_MAP, GroupOffsets, Translated, untranslated
from ottla.mirroring.names import map_topic_of
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.stable_map import wait_until_stable
from ottla.mirroring.switch_plan import SwitchPlan, plan_switch
from ottla.mirroring.topic_plan import TopicPlan


class Switched(NamedTuple):
    """`moved`: None if more has to be mirrored before, up to `behind`."""

    moved: list[Translated] | None
    behind: Mapping[TopicPartition, int]


class GroupSwitch:
    """For the thread of `offsets`, with its clients."""

    def __init__(
        self,
        spec: MirrorSpec,
        source: SideClient,
        target: SideClient,
        offsets: GroupOffsets,
        tell: Tell,
    ) -> None:
        self._spec = spec
        self._source = source
        self._target = target
        self._offsets = offsets
        self._tell = tell

    def switch(self, group: str, plan: TopicPlan, out: Collection[str]) -> Switched:
        """Sets the group's offsets, whatever it has committed at the target before. Nobody may
        read with it on either side. `out`: topics at the target that are not mirrored on. Raises
        ClientError and LibrdkafkaError.
        """
        self._check_empty(group)
        commits = self._commits(group)
        wanted = self._plan(group, commits, plan, out)
        if wanted.behind:
            return Switched(None, wanted.behind)
        wait_until_stable(self._target, map_topic_of(self._spec.name))
        self._offsets.read_map()
        # Somebody may have read with it meanwhile.
        self._check_empty(group)
        if self._commits(group) != commits:
            return Switched(None, {})
        moved = self._moved(group, commits, plan)
        if wanted.aside:
            text = (
                f"Group {group} has offsets in topics that this mirror leaves aside; they are not "
                f"set: {', '.join(wanted.aside)}."
            )
            self._tell(Event(events.GROUP, text, {"group": group}))
        return Switched(moved, {})

    def _check_empty(self, group: str) -> None:
        check_empty(self._source, group, "source")
        check_empty(self._target, group, "target")

    def _commits(self, group: str) -> dict[TopicPartition, Commit]:
        with self._source.asked():
            return commits_of(self._source, group)

    def _plan(
        self,
        group: str,
        commits: Mapping[TopicPartition, Commit],
        plan: TopicPlan,
        out: Collection[str],
    ) -> SwitchPlan:
        known = {topic.name: topic.partitions for topic in plan.mirrored.values()}
        with self._source.asked():
            ends = end_offsets(
                self._source,
                [each for each in commits if each.partition < known.get(each.topic, 0)],
            )
        positions = committed_positions(self._target, self._spec.name)
        left_out = {each.topic for each, position in positions.items() if position.is_left_out}
        wanted = plan_switch(
            {each: commit.offset for each, commit in commits.items()},
            ends,
            plan,
            {*out, *left_out},
            {each: position.offset for each, position in positions.items()},
            prefix=self._spec.prefix,
        )
        if wanted.refused is not None:
            raise ClientError(
                f"cannot move group {group!r}: {wanted.refused}",
                "It can be set there by time: ottla group reset GROUP --to-time TIME",
            )
        return wanted

    def _moved(
        self, group: str, commits: Mapping[TopicPartition, Commit], plan: TopicPlan
    ) -> list[Translated]:
        found = self._offsets.translated(commits, plan.mirrored, self._offsets.ends(plan.mirrored))
        unknown = untranslated(commits, plan.mirrored, found)
        if unknown:
            raise ClientError(
                f"cannot move group {group!r} in {unknown}: {NOT_IN_MAP}",
                "It can be set there by time: ottla group reset GROUP --to-time TIME",
            )
        offsets = {each.partition: each.target for each in found}
        texts = {each.partition: each.metadata for each in found}
        with self._target.asked():
            refused = commit_offsets(self._target, group, offsets, texts)
        if refused:
            raise ClientError(
                f"cannot set the offsets of group {group!r} at the target: "
                f"{reason_of(next(iter(refused.values())))}."
            )
        return found


def check_empty(client: SideClient, group: str, side: str) -> None:
    """Raises ClientError if the group has members."""
    with client.asked():
        found = described_groups(client, [group]).get(group)
    if found is not None and found.state != EMPTY:
        raise ClientError(
            f"group {group!r} still reads at the {side} ({found.state}).",
            "Stop its consumers first; it is moved at its last committed offsets.",
        )


def check_committed(client: SideClient, group: str) -> None:
    """Raises ClientError if the group has committed nothing."""
    with client.asked():
        commits = commits_of(client, group)
    if not commits:
        raise ClientError(
            f"there is no group {group!r} with committed offsets at the source.",
            "To list all groups: ottla group list --bootstrap HOST:PORT",
        )
