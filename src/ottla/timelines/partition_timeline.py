"""Records what happens to one partition, cheaply enough for the produce path.

`PartitionTimeline` keeps no history. It collects steps (see `step.py`) and returns them from
`take`, which the recorder calls every half second for partitions with new steps; it does not use
files. Events within `WINDOW_MS` after the first event of a step join that step. So under load there
are at most ten steps per second for each number, and at low load each event has its own, exact
step.

An idle partition holds a few numbers and no step. There is no clock inside: `now_ms` is passed in.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from ottla.timelines.delivery_metadata import DeliveredBatch, read_delivery
from ottla.timelines.pending_steps import MAX_STEPS, MAX_TRACKS, Gathering, Track
from ottla.timelines.rejected_offsets import rejected_steps
from ottla.timelines.replica_timeline import ReplicaTimeline
from ottla.timelines.step import (
    Clients,
    Kind,
    Name,
    Pipeline,
    Step,
    Versions,
    joined_clients,
    joined_versions,
)

MAX_CLIENT_CHANGES: Final = 4
"""Changes of client per window that start a new step; after these, clients share a step."""
MAX_CLIENT_CHARS: Final = 256
MAX_GROUP_CHARS: Final = 1024
"""Longer names are not recorded, because a cut name could mean another group."""

NO_CLIENT: Final = ""


class Timeline(Protocol):
    """What a partition records; each call costs at most about a microsecond."""

    def appended(
        self, base_offset: int, last_offset: int, now_ms: int, client_id: str, producer_id: int
    ) -> None:
        """Batches `base_offset` to `last_offset` were appended to the log."""

    def high_watermark(self, offset: int, now_ms: int) -> None:
        """The high watermark is now `offset`: everything below it is committed."""

    def committed(self, group: str, offset: int, metadata: str | None, now_ms: int) -> None:
        """A group committed `offset`; the metadata may contain a pipeline's delivery (see
        `delivery_metadata.py`).
        """

    def group_is_at(self, group: str, offset: int, metadata: str | None) -> None:
        """A group's position when its coordinator loaded: the start of the group's next step."""

    def started_at(self, offset: int, now_ms: int, reason: str) -> None:
        """The log start is now `offset`, for this reason: "retention.ms", "retention.bytes",
        "DeleteRecords".
        """

    def truncated(self, end_offset: int, now_ms: int) -> None:
        """The log was truncated to `end_offset` (a follower's divergence)."""

    def replicated(self, broker_id: int, offset: int, now_ms: int) -> None:
        """On the leader: the follower fetches from `offset`, so it has everything below."""

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
        """The leader (-1: none; `leads`: this broker) and the in-sync set; the log ends at
        `end_offset`.
        """

    def diverged(self, broker_id: int, from_offset: int, to_offset: int, now_ms: int) -> None:
        """On the leader: the follower must truncate its records from..to (exclusive)."""


class PartitionTimeline(ReplicaTimeline):
    """The timelines of one partition. `dirty` is shared with the recorder: a timeline with steps
    adds itself.
    """

    __slots__ = (
        "_clients",
        "_end_before",
        "_end_changes",
        "_end_client",
        "_end_closes_ms",
        "_end_first",
        "_end_last",
        "_end_producer",
        "_end_since_ms",
        "_end_until_ms",
        "_high_before",
        "_high_closes_ms",
        "_high_first",
        "_high_last",
        "_high_since_ms",
        "_high_until_ms",
        "_opening_told",
        "_start",
        "_tracks",
        "end_at_open",
        "high_at_open",
        "opened_ms",
    )

    def __init__(
        self,
        *,
        start_offset: int,
        end_offset: int,
        high_watermark: int,
        now_ms: int,
        dirty: dict[Gathering, None],
    ) -> None:
        super().__init__(dirty)
        self.opened_ms = now_ms
        self.end_at_open = end_offset
        self.high_at_open = high_watermark
        self._tracks: dict[tuple[Kind, Name], Track] | None = None
        self._start = start_offset
        self._opening_told = end_offset == 0
        self._end_closes_ms = self._end_changes = 0
        self._end_last = end_offset
        self._end_client = NO_CLIENT
        self._end_producer = -1
        self._end_until_ms = 0
        self._clients: Clients = ()
        self._high_closes_ms = 0
        self._high_last = high_watermark
        self._high_until_ms = 0

    def appended(
        self, base_offset: int, last_offset: int, now_ms: int, client_id: str, producer_id: int
    ) -> None:
        """Batches `base_offset` to `last_offset` were appended, sent by this client (producer id
        -1: none).
        """
        if (
            self._end_until_ms <= now_ms < self._end_closes_ms
            and producer_id == self._end_producer
            and client_id == self._end_client
        ):
            self._end_last = last_offset + 1
            self._end_until_ms = now_ms
            return
        self._append_differs(base_offset, last_offset + 1, now_ms, client_id, producer_id)

    def _append_differs(
        self, base_offset: int, end: int, now_ms: int, client_id: str, producer_id: int
    ) -> None:
        """The first append of a step, or one by a different client."""
        if not self._opening_told:
            self._opening_told = True
            self._add(_opening_step(self.opened_ms, self.end_at_open))
        client = (producer_id, client_id[:MAX_CLIENT_CHARS])
        closes_ms = self._end_closes_ms
        if self._end_until_ms <= now_ms < closes_ms:
            if self._end_changes >= MAX_CLIENT_CHANGES:
                self._clients = joined_clients(self._clients, (client,))
                self._end_client, self._end_producer = client_id, producer_id
                self._end_last, self._end_until_ms = end, now_ms
                return
            self._close_end()
            self._end_changes += 1
        else:
            self._close_end()
            self._end_changes = 0
            closes_ms = now_ms + self._window_ms()
        self._end_closes_ms = closes_ms
        self._end_since_ms = self._end_until_ms = now_ms
        self._end_before, self._end_first, self._end_last = base_offset, end, end
        self._end_client, self._end_producer = client_id, producer_id
        self._clients = (client,)
        self._dirty[self] = None

    def high_watermark(self, offset: int, now_ms: int) -> None:
        """Everything below `offset` is on all in-sync replicas."""
        if self._high_until_ms <= now_ms < self._high_closes_ms and offset > self._high_last:
            self._high_last = offset
            self._high_until_ms = now_ms
            return
        before = self._high_last
        if offset == before:
            return
        self._close_high()
        self._high_last = offset
        if offset < before:
            return
        # Share the end's window if one is open, so that both can become one step.
        same = self._end_closes_ms if self._end_since_ms_or_0() == now_ms else 0
        self._high_closes_ms = same or now_ms + self._window_ms()
        self._high_since_ms = self._high_until_ms = now_ms
        self._high_before, self._high_first = before, offset
        self._dirty[self] = None

    def committed(self, group: str, offset: int, metadata: str | None, now_ms: int) -> None:
        """A group's commit. A pipeline's is recorded twice: as the group's, and as the delivery
        that it reports, with what it rejected.
        """
        if offset < 0 or len(group) > MAX_GROUP_CHARS:
            return
        # A group cannot have read past the leader's log end, whatever it commits. A follower's may
        # be behind.
        if self._leads:
            offset = min(offset, self._end_last)
        delivery = read_delivery(metadata) if metadata else None
        if delivery is not None:
            pipeline: Pipeline = (group, delivery.query, delivery.table)
            self._passed(Kind.DELIVERED, pipeline, offset, now_ms, delivery)
            self._rejected(pipeline, delivery, now_ms)
        self._passed(Kind.GROUP, group, offset, now_ms, None)

    def group_is_at(self, group: str, offset: int, metadata: str | None) -> None:
        """A group's position when the coordinator loaded: not an event, but the start of the next
        step.
        """
        if offset < 0 or len(group) > MAX_GROUP_CHARS:
            return
        if self._leads:
            offset = min(offset, self._end_last)
        tracks: list[tuple[Kind, Name]] = [(Kind.GROUP, group)]
        delivery = read_delivery(metadata) if metadata else None
        if delivery is not None:
            tracks.append((Kind.DELIVERED, (group, delivery.query, delivery.table)))
        for kind, name in tracks:
            track = self._track(kind, name)
            if track.position is None:
                track.position = offset
                if kind is Kind.DELIVERED and delivery is not None:
                    track.told = (delivery.batch, delivery.rejected)

    def started_at(self, offset: int, now_ms: int, reason: str) -> None:
        """Records below `offset` are deleted. These steps are never coalesced: deletion is rare."""
        if offset > self._start:
            self._add(Step(Kind.START, reason, now_ms, now_ms, self._start, offset, offset))
            self._start = offset

    def truncated(self, end_offset: int, now_ms: int) -> None:
        """The log was truncated to `end_offset`: later appends there are other records, which no
        group has read yet.
        """
        self._close_own()
        self._return_groups(end_offset)
        end, committed = self._end_last, min(self._high_last, self._end_last)
        if end_offset < end:
            numbers = (now_ms, now_ms, end_offset, max(committed, end_offset), end)
            self._add(Step(Kind.CUT, self._role, *numbers))
        self._end_last = end_offset
        self._high_last = min(self._high_last, end_offset)
        self._add(_opening_step(now_ms, end_offset))

    def take(self, now_ms: int, *, all_of_them: bool = False) -> list[Step]:
        """The finished steps (or all), oldest first. The timeline stays dirty while one is still
        open.
        """
        if all_of_them or not self._end_until_ms <= now_ms < self._end_closes_ms:
            self._close_end()
        if all_of_them or not self._high_until_ms <= now_ms < self._high_closes_ms:
            self._close_high()
        is_open = bool(self._end_closes_ms or self._high_closes_ms)
        for (kind, name), track in (self._tracks or {}).items():
            if track.closes_ms:
                if all_of_them or not track.until_ms <= now_ms < track.closes_ms:
                    self._close_track(kind, name, track)
                else:
                    is_open = True
        is_open |= self._close_copies(now_ms, all_of_them=all_of_them)
        if all_of_them:
            self._tell_found_role()
        steps, self._closed = self._closed, []
        if is_open:
            self._dirty[self] = None
        else:
            self._dirty.pop(self, None)
        return steps

    def _passed(
        self, kind: Kind, name: Name, offset: int, now_ms: int, delivery: DeliveredBatch | None
    ) -> None:
        track = self._track(kind, name)
        position = track.position
        if offset == position:
            return
        if position is not None and offset < position:
            self._close_track(kind, name, track)
            if kind is Kind.GROUP:
                self._add(Step(Kind.SET_BACK, name, now_ms, now_ms, offset, offset, position))
                self._forget_told(name)
            track.position = offset
            return
        versions = (
            Versions(delivery.batch, delivery.batch, delivery.version, delivery.version)
            if delivery
            else None
        )
        if track.closes_ms and track.until_ms <= now_ms < track.closes_ms:
            track.position, track.until_ms = offset, now_ms
            if versions is not None:
                track.versions = joined_versions(track.versions, versions)
                track.has_rejects |= _rejects_after(delivery, track.before)
            return
        self._close_track(kind, name, track)
        track.position = offset
        begin = delivery.begin if delivery else None
        if begin is not None and (position is None or begin > position):
            position = min(begin, offset)
        track.unknown = position is None
        track.before = offset if position is None else position
        track.first, track.versions = offset, versions
        track.has_rejects = _rejects_after(delivery, 0 if track.unknown else track.before)
        track.since_ms = track.until_ms = now_ms
        track.closes_ms = now_ms + self._window_ms()
        self._dirty[self] = None
        if delivery is not None and len(self._closed) < MAX_STEPS // 4:
            # Micro-batches are rare, and the exact version of a row justifies its own step.
            self._close_track(kind, name, track)

    def _rejected(self, pipeline: Pipeline, delivery: DeliveredBatch, now_ms: int) -> None:
        """What a commit says of rejected offsets, once: the pipeline repeats its last commit."""
        track = self._track(Kind.DELIVERED, pipeline)
        told = (delivery.batch, delivery.rejected)
        if delivery.rejected is not None and track.told != told:
            for step in rejected_steps(pipeline, delivery.rejected, self._end_last, now_ms):
                self._add(step)
        track.told = told

    def _forget_told(self, group: Name) -> None:
        """The group was set back: its pipelines may reject the same offsets once more."""
        for (kind, name), track in (self._tracks or {}).items():
            if kind is Kind.DELIVERED and isinstance(name, tuple) and name[:1] == (group,):
                track.told = None

    def _track(self, kind: Kind, name: Name) -> Track:
        if self._tracks is None:
            self._tracks = {}
        track = self._tracks.get((kind, name))
        if track is None:
            if len(self._tracks) >= MAX_TRACKS:
                (oldest_kind, oldest_name), oldest = next(iter(self._tracks.items()))
                self._close_track(oldest_kind, oldest_name, oldest)
                del self._tracks[oldest_kind, oldest_name]
            track = self._tracks[kind, name] = Track()
        return track

    def _close_own(self) -> None:
        self._close_end()
        self._close_high()

    def _return_groups(self, end_offset: int) -> None:
        for (kind, name), track in (self._tracks or {}).items():
            if track.position is not None and track.position > end_offset:
                self._close_track(kind, name, track)
                track.position = end_offset

    def _end_since_ms_or_0(self) -> int:
        return self._end_since_ms if self._end_closes_ms else 0

    def _close_end(self) -> None:
        if self._end_closes_ms:
            self._end_closes_ms = 0
            since_ms, until_ms = self._end_since_ms, self._end_until_ms
            before, first, last = self._end_before, self._end_first, self._end_last
            self._add(Step(Kind.END, self._clients, since_ms, until_ms, before, first, last))

    def _close_high(self) -> None:
        if self._high_closes_ms:
            self._high_closes_ms = 0
            since_ms, until_ms = self._high_since_ms, self._high_until_ms
            before, first, last = self._high_before, self._high_first, self._high_last
            numbers = (since_ms, until_ms, before, first, last)
            end = self._closed[-1] if self._closed else None
            if end is not None and end.kind is Kind.END and end[2:7] == numbers:
                self._closed[-1] = end._replace(kind=Kind.END_AND_HIGH)
            else:
                self._add(Step(Kind.HIGH, None, *numbers))

    def _close_track(self, kind: Kind, name: Name, track: Track) -> None:
        if track.closes_ms:
            track.closes_ms = 0
            assert track.position is not None
            numbers = (track.since_ms, track.until_ms, track.before, track.first, track.position)
            self._add(Step(kind, name, *numbers, track.unknown, track.versions, track.has_rejects))
            track.versions = None


def _rejects_after(delivery: DeliveredBatch | None, offset: int) -> bool:
    """Whether a delivery rejected an offset at or after this one, or may have."""
    rejected = None if delivery is None else delivery.rejected
    return rejected is not None and rejected.reaches(offset)


def _opening_step(now_ms: int, end: int) -> Step:
    return Step(Kind.OPENED, None, now_ms, now_ms, end, end, end)
