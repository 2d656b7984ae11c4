"""Keeps the offsets of groups up at the target, translated exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client.admin.committed_offsets import Commit, commit_offsets, commits_of
from ottla.client.admin.groups import described_groups, listed_groups
from ottla.client.admin.offsets import end_offsets, stable_offsets
from ottla.client.errors import RefusedError, reason_of
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import events
from ottla.mirroring.clusters import SideClient
from ottla.mirroring.events import Event, Tell
from ottla.mirroring.group_plan import offsets_to_set
from ottla.mirroring.map_reader import MapReader
from ottla.mirroring.names import is_of_a_mirror, map_topic_of
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.told_once import ToldOnce
from ottla.mirroring.topic_plan import Matches, SourceTopic

EMPTY: Final = "empty"
NOT_IN_MAP: Final = "the map of offsets at the target does not reach back to the group's offset."
Mirrored = Mapping[str, SourceTopic]


class Translated(NamedTuple):
    """A group's offset for a partition on both sides."""

    partition: TopicPartition
    """At the target."""
    source: int
    target: int
    metadata: str


class GroupOffsets:
    """For one thread, which owns both clients and the reader of the map."""

    def __init__(
        self,
        spec: MirrorSpec,
        source: SideClient,
        target: SideClient,
        reader: MapReader,
        matches: Matches,
        tell: Tell,
    ) -> None:
        self._spec = spec
        self._source = source
        self._target = target
        self._reader = reader
        self._matches = matches
        self._last_set: dict[str, dict[TopicPartition, int]] = {}
        self._tell_once = ToldOnce(tell)

    def keep_up(self, mirrored: Mirrored) -> None:
        """Sets the offsets of all groups that are meant and have no members at the target. A group
        for which a permission is missing holds up no other. Raises ClientError and LibrdkafkaError.
        """
        with self._source.asked():
            groups = [
                each.group
                for each in listed_groups(self._source)
                if not is_of_a_mirror(each.group) and self._matches(each.group)
            ]
        if not groups:
            return
        self.read_map()
        ends = self.ends(mirrored)
        busy = self._busy(groups)
        for group in groups:
            try:
                if not (self._busy([group]) if busy is None else group in busy):
                    self._keep_one_up(group, mirrored, ends)
            except RefusedError as error:
                if error.lacking is None:
                    raise
                self._say_once(f"Group {group} is not kept up: {error.reason}.", group)

    def _busy(self, groups: Sequence[str]) -> set[str] | None:
        """Those that have members at the target; None if the client may not see one of several.
        Raises RefusedError if it may not see the only one.
        """
        try:
            with self._target.asked():
                there = described_groups(self._target, groups)
        except RefusedError as error:
            if error.lacking is None or len(groups) == 1:
                raise
            return None
        return {name for name, group in there.items() if group.state != EMPTY}

    def _keep_one_up(
        self, group: str, mirrored: Mirrored, ends: Mapping[TopicPartition, int]
    ) -> None:
        with self._source.asked():
            commits = commits_of(self._source, group)
        translated = self.translated(commits, mirrored, ends)
        begun = {each: commit for each, commit in commits.items() if each in self._reader.maps}
        unknown = untranslated(begun, mirrored, translated)
        if unknown:
            self._say_once(f"Group {group} is not kept up in {unknown}: {NOT_IN_MAP}", group)
        self._set(group, translated)

    def read_map(self) -> None:
        """Reads the map up to its end now."""
        topic = TopicPartition(map_topic_of(self._spec.name), 0)
        with self._target.asked():
            end = stable_offsets(self._target, [topic])[topic]
        self._reader.read_to(end)

    def ends(self, mirrored: Mirrored) -> dict[TopicPartition, int]:
        """Of the target's partitions. Raises ClientError."""
        partitions = [
            TopicPartition(name, index)
            for name, topic in mirrored.items()
            for index in range(topic.partitions)
        ]
        with self._target.asked():
            return end_offsets(self._target, partitions)

    def translated(
        self,
        commits: Mapping[TopicPartition, Commit],
        mirrored: Mirrored,
        ends: Mapping[TopicPartition, int],
    ) -> list[Translated]:
        """The commits of mirrored partitions, in order. `ends`: of the target's partitions."""
        names = {topic.name: name for name, topic in mirrored.items()}
        found = []
        for each, commit in sorted(commits.items()):
            known = self._reader.maps.get(each)
            target = None if known is None else known.translate(commit.offset)
            if each.topic not in names or target is None:
                continue
            there = TopicPartition(names[each.topic], each.partition)
            if target > 0 and target + 1 == ends.get(there) and not self._spec.into_existing:
                # After the last record there is only the marker of the mirror's transaction.
                target = self._after_marker(each, commit.offset, target)
            found.append(Translated(there, commit.offset, target, commit.metadata))
        return found

    def _after_marker(self, partition: TopicPartition, source: int, target: int) -> int:
        return target + (1 if self._reader.maps[partition].is_after_all(source) else 0)

    def _set(self, group: str, translated: Sequence[Translated]) -> None:
        wanted = {each.partition: each.target for each in translated}
        if not wanted:
            return
        last = self._last_set.setdefault(group, {})
        with self._target.asked():
            commits = commits_of(self._target, group)
        there = {each: commit.offset for each, commit in commits.items()}
        moves = offsets_to_set(wanted, there, last)
        if not moves:
            return
        texts = {each.partition: each.metadata for each in translated}
        try:
            refused = commit_offsets(self._target, group, moves, texts)
        except RefusedError as error:
            self._say_once(f"The offsets of group {group} are not kept up: {error.reason}.", group)
            return
        last.update({each: at for each, at in moves.items() if each not in refused})
        if refused and group in described_groups(self._target, [group]):
            # A member that joined meanwhile has taken the group over: no failure.
            code = next(iter(refused.values()))
            if code.name not in ("unknown_member_id", "rebalance_in_progress"):
                self._say_once(
                    f"The offsets of group {group} are not kept up: {reason_of(code)}.", group
                )

    def _say_once(self, text: str, group: str) -> None:
        self._tell_once(Event(events.GROUP, text, {"group": group}))


def untranslated(
    commits: Mapping[TopicPartition, Commit], mirrored: Mirrored, found: Iterable[Translated]
) -> str:
    """The partitions of mirrored topics whose offsets are not in the map, as words."""
    names = {topic.name: name for name, topic in mirrored.items()}
    known = {each.partition for each in found}
    return ", ".join(
        str(each)
        for each in sorted(commits)
        if each.topic in names
        and each.partition < mirrored[names[each.topic]].partitions
        and TopicPartition(names[each.topic], each.partition) not in known
    )
