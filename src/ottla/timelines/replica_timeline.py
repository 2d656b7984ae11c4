"""The replicas' part of a partition's timeline: how far each follower has fetched, who leads, and
who is in sync.

A follower's fetch offset is one more number that only grows, and is coalesced like the others. It
goes back if the follower truncated its log or lost its disk; its next step then has an unknown
start (`unknown_before`). The leader, its epoch and the in-sync set are not numbers: each change is
a step with the log end at that time. The first one after a start records what was found, and waits
in memory until something else happens: ten thousand idle partitions write nothing at a start.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from ottla.timelines.group_timeline import GroupTimeline
from ottla.timelines.pending_steps import MAX_TRACKS, Gathering, Track
from ottla.timelines.step import NO_ROLE, Kind, Role, Step


class ReplicaTimeline(GroupTimeline, ABC):
    """The replicas' part of a replica's timeline, which has the groups' part, too."""

    __slots__ = ("_copies", "_found_role", "_leads", "_role")

    def __init__(self, dirty: "dict[Gathering, None]") -> None:
        super().__init__(dirty)
        self._copies: dict[int, Track] = {}
        self._role = NO_ROLE
        self._leads = True
        """This broker's log end is the partition's: nothing exists beyond it."""
        self._found_role: Step | None = None

    @abstractmethod
    def _close_own(self) -> None:
        """Close the open steps of the log's own numbers: a step belongs to one leader."""

    def replicated(self, broker_id: int, offset: int, now_ms: int) -> None:
        """The follower fetches from `offset`: it has everything below."""
        track = self._copies.get(broker_id)
        if track is not None:
            position = track.position
            if offset == position:
                return
            if track.until_ms <= now_ms < track.closes_ms and offset > (position or 0):
                track.position, track.until_ms = offset, now_ms
                return
        self._copy_differs(broker_id, track, offset, now_ms)

    def _copy_differs(self, broker_id: int, track: Track | None, offset: int, now_ms: int) -> None:
        """The first fetch of a step, or one that went back."""
        self._note_time(now_ms, 0 if track is None else track.until_ms)
        if track is None:
            if len(self._copies) >= MAX_TRACKS:
                oldest = next(iter(self._copies))
                self._close_copy(oldest, self._copies.pop(oldest))
            track = self._copies[broker_id] = Track()
        self._close_copy(broker_id, track)
        position = track.position
        track.unknown = position is None or offset < position
        track.before = offset if position is None or offset < position else position
        track.first = track.position = offset
        track.since_ms = track.until_ms = now_ms
        track.closes_ms = now_ms + self._window_ms()
        self._dirty[self] = None

    def in_sync(
        self,
        leader: int,
        leader_epoch: int,
        isr: Iterable[int],
        end_offset: int,
        now_ms: int,
        partition_epoch: int = -1,
        *,
        leads: bool = True,
    ) -> None:
        """Leader (-1: none), its epoch or the in-sync set have changed; the log ends at
        `end_offset`. `leads`: this broker is the leader.

        With `partition_epoch` (KIP-497), two consecutive changes can be recognised.
        """
        began, ended = leads and not self._leads, self._leads and not leads
        self._leads = leads
        if ended:
            self._forget_ahead()
        if began:
            self._return_groups(end_offset)
        role: Role = (leader, leader_epoch, tuple(isr), partition_epoch)
        before = self._role
        if role == before:
            return
        self._note_time(now_ms)
        self._role = role
        numbers = (now_ms, now_ms, end_offset, end_offset, end_offset)
        if before == NO_ROLE:
            self._found_role = Step(Kind.IN_SYNC, role, *numbers, unknown_before=True)
            return
        if role[:2] != before[:2]:
            self._close_own()
            # Another leader may have truncated them, so their next steps have an unknown start.
            for broker_id, track in self._copies.items():
                self._close_copy(broker_id, track)
            self._copies.clear()
        self._add(Step(Kind.IN_SYNC, role, *numbers))

    def diverged(self, broker_id: int, from_offset: int, to_offset: int, now_ms: int) -> None:
        """A follower has other records than this leader from `from_offset` to before `to_offset`,
        and must truncate them (KIP-595's diverging epoch).
        """
        if from_offset < to_offset:
            self._note_time(now_ms)
            numbers = (now_ms, now_ms, from_offset, from_offset, to_offset)
            self._add(Step(Kind.DIVERGED, str(broker_id), *numbers))

    def _add(self, step: Step) -> None:
        self._tell_found_role()
        super()._add(step)

    def _latest_until_ms(self) -> int:
        copied_ms = max((track.until_ms for track in self._copies.values()), default=0)
        return max(copied_ms, super()._latest_until_ms())

    def _tell_found_role(self) -> None:
        found, self._found_role = self._found_role, None
        if found is not None:
            super()._add(found)

    def _close_copies(self, now_ms: int, *, all_of_them: bool) -> bool:
        """Close the followers' finished steps; returns whether one is still open."""
        is_open = False
        for broker_id, track in self._copies.items():
            if track.closes_ms:
                if all_of_them or not track.until_ms <= now_ms < track.closes_ms:
                    self._close_copy(broker_id, track)
                else:
                    is_open = True
        return is_open

    def _close_copy(self, broker_id: int, track: Track) -> None:
        if track.closes_ms:
            track.closes_ms = 0
            assert track.position is not None
            numbers = (track.since_ms, track.until_ms, track.before, track.first, track.position)
            self._add(Step(Kind.REPLICA, str(broker_id), *numbers, track.unknown))
