"""The share partitions of one partition of `__share_group_state` (Kafka's ShareCoordinatorShard).

Two epochs fence those who have been replaced. The *state epoch* grows when the group's coordinator
initializes a share partition again: FENCED_STATE_EPOCH. The *leader epoch* is that of the partition
whose records are shared: a new leader reads the state, and from then on the writes of the one
before are FENCED_LEADER_EPOCH.

A start offset never moves back within a state epoch. Kafka takes it as it comes: a write that was
delayed on the network would take the start back to where it was when that write was made, and
records that were acknowledged since would be delivered again.

A leader writes only into a state that it has read. Kafka takes a write with any later leader epoch:
a leader that still has the state of a group that was deleted would write its start into the state
of the next group of that name, which would pass over all records before it. So a new state has no
leader epoch until a leader reads it, and a write has exactly the state epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch, TransactionMarker
from ottla.shards.step import Step as ShardStep
from ottla.share.settings import ShareCoordinatorSettings
from ottla.share.share_partition import StoredState, Write
from ottla.share.state_batch import are_in_order, combined, updated
from ottla.share.stored import (
    NO_COUNT,
    NO_EPOCH,
    NO_OFFSET,
    ShareKey,
    ShareRecord,
    Snapshot,
    Update,
)

MAX_AT_ONCE: Final = 500
"""States that one step writes whole or deletes, at 20 us each; one more for every 20 batches."""
MAX_LOOKS: Final = 50_000
"""States that one step looks at, at 0.2 us each."""

Step: TypeAlias = ShardStep[ShareRecord, None, ShareCoordinatorSettings]


class Summary(NamedTuple):
    """Where a share partition stands."""

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = NO_OFFSET
    delivery_complete_count: int = NO_COUNT


class Known:
    """The state of one share partition."""

    __slots__ = ("leader_epoch", "offset", "state", "state_epoch", "updates")

    def __init__(self) -> None:
        self.state = Snapshot(0, 0, 0, NO_OFFSET, NO_COUNT, 0, 0)
        self.updates = 0
        """Since the last snapshot."""
        self.offset = 0
        """Of the last snapshot in the log."""
        self.leader_epoch = NO_EPOCH
        """The highest so far; a snapshot that initializes has none."""
        self.state_epoch = 0


class ShareShard:
    """Every share partition of the partition, and the deciders over them."""

    def __init__(self) -> None:
        self.known: dict[ShareKey, Known] = {}
        """In the order of their last snapshots in the log."""
        self._by_topic: dict[UUID, dict[ShareKey, None]] = {}
        self.last_change = -1
        """Offset of the last record that was no snapshot of what is unchanged."""
        self._last_offset = -1

    # What the log has.

    def apply(
        self, record: ShareRecord, offset: int, timestamp_ms: int, producer: ProducerEpoch | None
    ) -> None:
        """Takes over one record of the log, while loading and ever after."""
        key, value = record
        self._last_offset = offset
        if value is None:
            self._forget(key)
            self.last_change = offset
            return
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = Known()
            known.offset = offset
            self._by_topic.setdefault(key.topic_id, {})[key] = None
        known.leader_epoch = max(known.leader_epoch, value.leader_epoch)
        if isinstance(value, Update):
            known.state = _updated(known.state, value)
            known.updates += 1
            self.last_change = offset
            return
        if value.create_ms == value.write_ms:
            self.last_change = offset
        if not are_in_order(value.batches):
            # Neither Kafka nor Ottla writes that; what follows is found by order.
            value = value._replace(batches=combined(value.batches, value.start_offset))
        known.state = value
        known.state_epoch = max(known.state_epoch, value.state_epoch)
        known.updates = 0
        if known.offset != offset:
            known.offset = offset
            del self.known[key]
            self.known[key] = known

    def _forget(self, key: ShareKey) -> None:
        if self.known.pop(key, None) is not None:
            its = self._by_topic[key.topic_id]
            del its[key]
            if not its:
                del self._by_topic[key.topic_id]

    def apply_marker(self, marker: TransactionMarker, offset: int) -> None:
        """Nothing to do: the coordinator's own records are in no transaction."""

    def loaded(self, step: Step) -> None:
        """Nothing to resume."""

    def expired(self, event: None, step: Step) -> None:
        raise AssertionError("share partitions set no timers")

    def unloaded(self, step: Step) -> None:
        """No request waits here."""

    # Requests. `exists`: the topic and partition are in the metadata. All raise ApiError.

    def initialize(
        self, key: ShareKey, state_epoch: int, start_offset: int, exists: bool, step: Step
    ) -> None:
        """InitializeShareGroupState: a state begins, with nothing in flight."""
        known = self.known.get(key)
        _check_key(key)
        if known is not None and state_epoch != NO_EPOCH and state_epoch < known.state_epoch:
            raise ApiError(ErrorCode.fenced_state_epoch, _state_epoch_text(known, state_epoch))
        _check_exists(exists)
        snapshot = Snapshot(
            0 if known is None else known.state.snapshot_epoch + 1,
            state_epoch,
            NO_EPOCH,
            start_offset,
            NO_COUNT if start_offset == NO_OFFSET else 0,
            step.now_ms,
            step.now_ms,
        )
        step.records.append(ShareRecord(key, snapshot))

    def read(self, key: ShareKey, leader_epoch: int, exists: bool, step: Step) -> StoredState:
        """ReadShareGroupState: a leader takes over; -1 only looks."""
        known = self._initialized(key)
        self._check_leader_epoch(known, leader_epoch)
        _check_exists(exists)
        state = known.state
        if leader_epoch not in (NO_EPOCH, state.leader_epoch):
            write = Write(state.start_offset, state.delivery_complete_count, ())
            step.records.append(self._record(key, known, leader_epoch, write, step))
        return StoredState(state.state_epoch, state.start_offset, state.batches)

    def write(
        self,
        key: ShareKey,
        state_epoch: int,
        leader_epoch: int,
        write: Write,
        exists: bool,
        step: Step,
    ) -> None:
        """WriteShareGroupState."""
        known = self._initialized(key)
        self._check_leader_epoch(known, leader_epoch)
        if state_epoch != NO_EPOCH and state_epoch != known.state_epoch:
            raise ApiError(ErrorCode.fenced_state_epoch, _state_epoch_text(known, state_epoch))
        _check_exists(exists)
        if leader_epoch > known.state.leader_epoch:
            raise ApiError(
                ErrorCode.fenced_state_epoch,
                f"No leader of epoch {leader_epoch} has read this state.",
            )
        if write.start_offset != NO_OFFSET:
            start_offset = max(write.start_offset, known.state.start_offset)
            write = write._replace(start_offset=start_offset)
        step.records.append(self._record(key, known, known.state.leader_epoch, write, step))

    def delete(self, key: ShareKey, exists: bool, step: Step) -> None:
        """DeleteShareGroupState; a state that there is not is deleted already."""
        _check_key(key)
        _check_exists(exists)
        if key in self.known:
            step.records.append(ShareRecord(key, None))

    def summary(self, key: ShareKey, exists: bool) -> Summary:
        """ReadShareGroupStateSummary."""
        _check_key(key)
        _check_exists(exists)
        known = self.known.get(key)
        if known is None:
            return Summary()
        state = known.state
        return Summary(
            state.state_epoch,
            max(state.leader_epoch, 0),
            state.start_offset,
            state.delivery_complete_count,
        )

    def _initialized(self, key: ShareKey) -> Known:
        _check_key(key)
        known = self.known.get(key)
        if known is None:
            raise ApiError(
                ErrorCode.invalid_request, "The share partition has not been initialized."
            )
        return known

    def _check_leader_epoch(self, known: Known, leader_epoch: int) -> None:
        if leader_epoch != NO_EPOCH and leader_epoch < known.leader_epoch:
            raise ApiError(
                ErrorCode.fenced_leader_epoch,
                f"The leader epoch {leader_epoch} is lower than {known.leader_epoch}.",
            )

    def _record(
        self, key: ShareKey, known: Known, leader_epoch: int, write: Write, step: Step
    ) -> ShareRecord:
        """An update, or a snapshot after so many updates."""
        state = known.state
        start, count = write.start_offset, write.delivery_complete_count
        if known.updates < step.settings.updates_per_snapshot:
            batches = combined(write.batches, start)
            update = Update(state.snapshot_epoch, leader_epoch, start, count, batches)
            return ShareRecord(key, update)
        start = state.start_offset if start == NO_OFFSET else start
        snapshot = Snapshot(
            state.snapshot_epoch + 1,
            state.state_epoch,
            leader_epoch,
            start,
            count,
            step.now_ms,
            step.now_ms,
            updated(state.batches, write.batches, start),
        )
        return ShareRecord(key, snapshot)

    # Time, and what follows from other changes.

    def snapshot_cold(self, step: Step) -> bool:
        """Writes the state of share partitions that have not been written for long, so that what is
        older can be deleted; once, until something changes again. Whether there may be more.
        """
        step.is_atomic = False
        before_ms = step.now_ms - step.settings.cold_snapshot_interval_ms
        left = MAX_AT_ONCE
        # The oldest come first. Some may look young for ever, when a wall clock has jumped.
        for key, known in islice(self.known.items(), MAX_LOOKS):
            if known.offset >= self.last_change:
                return False
            if known.state.write_ms <= before_ms:
                if left <= 0:
                    return True
                left -= 1 + len(known.state.batches) // 20
                snapshot = known.state._replace(
                    snapshot_epoch=known.state.snapshot_epoch + 1, write_ms=step.now_ms
                )
                step.records.append(ShareRecord(key, snapshot))
        return False

    def redundant_before(self) -> int:
        """No record before this offset is needed."""
        oldest = next(iter(self.known.values()), None)
        return self._last_offset + 1 if oldest is None else oldest.offset

    def topics_deleted(self, topic_ids: Collection[UUID], step: Step) -> bool:
        """Deletes the states of topics that do not exist any more. Whether there may be more."""
        step.is_atomic = False
        gone = chain.from_iterable(self._by_topic.get(each, ()) for each in topic_ids)
        step.records += [ShareRecord(key, None) for key in islice(gone, MAX_AT_ONCE)]
        return len(step.records) == MAX_AT_ONCE

    def topic_ids(self) -> Sequence[UUID]:
        """Of all topics that have a state here."""
        return list(self._by_topic)

    def of_topic(self, topic_id: UUID) -> Iterable[ShareKey]:
        """The states of one topic; to be looked at before anything changes."""
        return self._by_topic.get(topic_id, ())


def _updated(state: Snapshot, update: Update) -> Snapshot:
    """The state after an update."""
    start = state.start_offset if update.start_offset == NO_OFFSET else update.start_offset
    leader_epoch = state.leader_epoch if update.leader_epoch == NO_EPOCH else update.leader_epoch
    return state._replace(
        leader_epoch=leader_epoch,
        start_offset=start,
        delivery_complete_count=update.delivery_complete_count,
        batches=updated(state.batches, update.batches, start),
    )


def _check_key(key: ShareKey) -> None:
    if key.partition < 0:
        raise ApiError(ErrorCode.invalid_request, "The partition id cannot be a negative number.")


def _check_exists(exists: bool) -> None:
    if not exists:
        raise ApiError(ErrorCode.unknown_topic_or_partition)


def _state_epoch_text(known: Known, state_epoch: int) -> str:
    return f"The state epoch {state_epoch} is not {known.state_epoch}."
