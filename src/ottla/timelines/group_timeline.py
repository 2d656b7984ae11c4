"""The groups' part of a partition's timeline: how far each has committed, and what its pipelines
have delivered and rejected.

The group's coordinator records it, which knows what the group had committed before (`Before`) and
who commits (`By`). So a step says where it begins even after a restart, or if the partition has
more groups than `MAX_TRACKS`.
"""

from typing import Protocol

from ottla.timelines.delivery_metadata import DeliveredBatch, read_delivery
from ottla.timelines.pending_steps import MAX_STEPS, MAX_TRACKS, Gathering, Track
from ottla.timelines.rejected_offsets import RejectedOffsets, rejected_steps
from ottla.timelines.step import Before, By, Kind, Name, Pipeline, Step, Versions, joined_versions

MAX_GROUP_CHARS = 1024
"""Longer names are not recorded, because a cut name could mean another group."""
UNKNOWN_END = 2**63 - 1
"""In place of the log end: this broker has no replica of the partition."""


class GroupsTimeline(Protocol):
    """Receives what a partition's groups do, as it happens. Times are milliseconds since 1970."""

    def committed(
        self,
        group: str,
        offset: int,
        metadata: str | None,
        now_ms: int,
        before: Before | None = None,
        by: By = By.UNKNOWN,
        noted_ms: int | None = None,
    ) -> None:
        """A group committed `offset`, after `before`; the metadata may contain a pipeline's
        delivery (see `delivery_metadata.py`). `noted_ms`: the time now, if the commit at `now_ms`
        had to be replicated first.
        """

    def forgotten(
        self, group: str, now_ms: int, reason: str, before: Before, noted_ms: int | None = None
    ) -> None:
        """A group's committed offset was removed."""


class GroupTimeline(Gathering):
    """The groups' timeline of a partition, of which this broker may have no replica."""

    __slots__ = ("_tracks",)

    def __init__(self, dirty: "dict[Gathering, None]") -> None:
        super().__init__(dirty)
        self._tracks: dict[tuple[Kind, Name], Track] | None = None

    def _log_end(self) -> int:
        """The log end, if it limits what a group can have read."""
        return UNKNOWN_END

    def committed(
        self,
        group: str,
        offset: int,
        metadata: str | None,
        now_ms: int,
        before: Before | None = None,
        by: By = By.UNKNOWN,
        noted_ms: int | None = None,
    ) -> None:
        """A group's commit. A pipeline's is recorded twice: as the group's, and as the delivery
        that it reports, with what it rejected.

        `before`: what the group had committed before; None: only what this timeline remembers.
        """
        if offset < 0 or len(group) > MAX_GROUP_CHARS:
            return
        if noted_ms is None:
            noted_ms = now_ms
        as_told, offset = offset, min(offset, self._log_end())
        delivery = read_delivery(metadata) if metadata else None
        if delivery is not None:
            pipeline: Pipeline = (group, delivery.query, delivery.table)
            self._know_pipeline(pipeline, before)
            passed = (Kind.DELIVERED, pipeline, offset, now_ms, noted_ms)
            self._passed(*passed, delivery, By.UNKNOWN, False)
            self._rejected(pipeline, delivery, now_ms)
            last = delivery.checkpoint, delivery.batch, delivery.version
            self._track(Kind.DELIVERED, pipeline).last = last
        is_first = before is not None and before.offset < 0
        if before is not None:
            self._know_group(group, before)
        self._passed(Kind.GROUP, group, offset, now_ms, noted_ms, None, by, is_first)
        self._track(Kind.GROUP, group).committed = as_told

    def forgotten(
        self, group: str, now_ms: int, reason: str, before: Before, noted_ms: int | None = None
    ) -> None:
        """The group's offset was removed, for this reason: "OffsetDelete", "DeleteGroups",
        "offsets.retention.minutes".
        """
        if before.offset < 0 or len(group) > MAX_GROUP_CHARS:
            return
        self._note_time(now_ms if noted_ms is None else noted_ms, now_ms)
        self._know_group(group, before)
        position = self._track(Kind.GROUP, group).position or 0
        for kind, name in list(self._tracks or ()):
            is_of_group = name == group or (isinstance(name, tuple) and name[:1] == (group,))
            if is_of_group and self._tracks is not None:
                self._close_track(kind, name, self._tracks.pop((kind, name)))
        self._add(Step(Kind.FORGOTTEN, (group, reason), now_ms, now_ms, 0, 0, position))

    def take(self, now_ms: int, *, all_of_them: bool = False) -> list[Step]:
        """The finished steps (or all), oldest first. The timeline stays dirty while one is still
        open.
        """
        is_open = self._close_tracks(now_ms, all_of_them=all_of_them)
        return self._taken(is_open=is_open)

    def _taken(self, *, is_open: bool) -> list[Step]:
        steps, self._closed = self._closed, []
        if is_open:
            self._dirty[self] = None
        else:
            self._dirty.pop(self, None)
        return steps

    def _close_tracks(self, now_ms: int, *, all_of_them: bool) -> bool:
        """Close the groups' finished steps; returns whether one is still open."""
        is_open = False
        for (kind, name), track in (self._tracks or {}).items():
            if track.closes_ms:
                if all_of_them or not track.until_ms <= now_ms < track.closes_ms:
                    self._close_track(kind, name, track)
                else:
                    is_open = True
        return is_open

    def _return_groups(self, end_offset: int) -> None:
        """No record exists at or after `end_offset`: who has passed it has read other records. A
        group that commits again has read those before its commit. A pipeline goes on from its
        checkpoint.
        """
        for (kind, name), track in (self._tracks or {}).items():
            if track.position is not None and track.position > end_offset:
                self._close_track(kind, name, track)
                track.position = end_offset if kind is Kind.GROUP else None

    def _forget_groups(self, end_offset: int) -> None:
        """It is not known any more where groups are that had passed `end_offset`."""
        for (kind, name), track in (self._tracks or {}).items():
            if track.position is not None and track.position > end_offset:
                self._close_track(kind, name, track)
                track.position = None

    def _forget_ahead(self) -> None:
        """Groups that committed past the log end may have read another leader's records there:
        this broker did not know yet that it did not lead.
        """
        for (kind, name), track in (self._tracks or {}).items():
            if track.position is not None and track.committed > track.position:
                self._close_track(kind, name, track)
                track.position = None

    def _latest_until_ms(self) -> int:
        return max((track.until_ms for track in (self._tracks or {}).values()), default=0)

    def _know_group(self, group: str, before: Before) -> None:
        """The group's position is what it has committed, not what this timeline has seen."""
        track = self._track(Kind.GROUP, group)
        if track.position is None or track.committed != before.offset:
            # Another coordinator has recorded the steps between them, or they are lost.
            self._close_track(Kind.GROUP, group, track)
            known = min(before.offset, self._log_end())
            track.position = known if before.offset >= 0 else None

    def _know_pipeline(self, pipeline: Pipeline, before: Before | None) -> None:
        """What the pipeline's last commit said, if the group's last commit was the pipeline's."""
        track = self._track(Kind.DELIVERED, pipeline)
        delivery = read_delivery(before.metadata) if before is not None else None
        if delivery is None or before is None or track.position is not None:
            return
        if (delivery.query, delivery.table) == pipeline[1:]:
            track.position = min(before.offset, self._log_end())
            track.told = (delivery.batch, delivery.rejected)
            track.last = (delivery.checkpoint, delivery.batch, delivery.version)

    def _passed(
        self,
        kind: Kind,
        name: Name,
        offset: int,
        now_ms: int,
        noted_ms: int,
        delivery: DeliveredBatch | None,
        by: By,
        is_first: bool,
    ) -> None:
        track = self._track(kind, name)
        position = track.position
        if offset == position:
            return
        if not track.until_ms <= now_ms < track.closes_ms:
            # Appends may be noted between a commit and its replication: it is not older than they.
            self._note_time(noted_ms, max(track.until_ms, now_ms))
        begin = delivery.begin if delivery else None
        if delivery is not None and not _goes_on(delivery, track.last):
            # A new checkpoint, which may begin anywhere.
            self._close_track(kind, name, track)
            position = None
        if position is not None and offset < position:
            self._close_track(kind, name, track)
            if kind is Kind.GROUP:
                numbers = (now_ms, now_ms, offset, offset, position)
                self._add(Step(Kind.SET_BACK, name, *numbers, by=by))
                self._forget_told(name)
            track.position = offset
            return
        versions = None
        if delivery is not None:
            versions = _versions(delivery, track.last if begin is None else None)
        if track.closes_ms and track.until_ms <= now_ms < track.closes_ms and by == track.by:
            track.position, track.until_ms = offset, now_ms
            if versions is not None:
                track.versions = joined_versions(track.versions, versions)
                track.has_rejects |= _rejects_after(delivery, track.before)
                track.reads_committed &= delivery is not None and delivery.reads_committed
            return
        self._close_track(kind, name, track)
        track.position = offset
        if begin is not None and (position is None or begin > position):
            position = min(begin, offset)
        track.unknown = position is None
        track.is_first, track.by = is_first, by
        track.before = offset if position is None else position
        track.first, track.versions = offset, versions
        track.has_rejects = _rejects_after(delivery, 0 if track.unknown else track.before)
        track.reads_committed = delivery is not None and delivery.reads_committed
        track.checkpoint = 0 if delivery is None else delivery.checkpoint
        track.since_ms = track.until_ms = now_ms
        track.closes_ms = now_ms + self._window_ms()
        self._dirty[self] = None
        if delivery is not None and len(self._closed) < MAX_STEPS // 4:
            # Micro-batches are rare, and the exact version of a row justifies its own step.
            self._close_track(kind, name, track)

    def _rejected(self, pipeline: Pipeline, delivery: DeliveredBatch, now_ms: int) -> None:
        """What a commit says of rejected offsets, once: the pipeline repeats its last commit."""
        track = self._track(Kind.DELIVERED, pipeline)
        told: tuple[int, RejectedOffsets | None] = (delivery.batch, delivery.rejected)
        if delivery.rejected is not None and track.told != told:
            for step in rejected_steps(pipeline, delivery.rejected, self._log_end(), now_ms):
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

    def _close_track(self, kind: Kind, name: Name, track: Track) -> None:
        if track.closes_ms:
            track.closes_ms = 0
            assert track.position is not None
            numbers = (track.since_ms, track.until_ms, track.before, track.first, track.position)
            known = (track.unknown, track.versions, track.has_rejects)
            by, reads = (track.by, track.is_first), track.reads_committed
            self._add(
                Step(
                    *(kind, name, *numbers, *known, *by),
                    reads_committed=reads,
                    checkpoint=track.checkpoint,
                )
            )
            track.versions = None


def _goes_on(delivery: DeliveredBatch, last: tuple[int, int, int] | None) -> bool:
    """Whether the pipeline's batch is by the checkpoint of its last one, or begins with it: then it
    begins where that one ended.
    """
    if last is None:
        return True
    checkpoint, batch, _ = last
    if checkpoint and delivery.checkpoint:
        return delivery.checkpoint == checkpoint
    return delivery.batch > batch


def _versions(delivery: DeliveredBatch, last: tuple[int, int, int] | None) -> Versions:
    """Its batch and version; with those before it of which nothing was committed."""
    batch, version = delivery.batch, delivery.version
    if last is None or not _goes_on(delivery, last):
        return Versions(batch, batch, version, version)
    _, last_batch, last_version = last
    first_batch = min(batch, last_batch + 1)
    first_version = version
    if first_batch < batch and last_version >= 0:
        first_version = min(version, last_version + 1)
    return Versions(first_batch, batch, first_version, version)


def _rejects_after(delivery: DeliveredBatch | None, offset: int) -> bool:
    """Whether a delivery rejected an offset at or after this one, or may have."""
    rejected = None if delivery is None else delivery.rejected
    return rejected is not None and rejected.reaches(offset)
