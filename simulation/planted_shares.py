"""Bugs of share groups (KIP-932), as patches like those in `planted`. They are looked for in runs
with `--shares`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.groups.share import state_partitions
from ottla.groups.share.shard import ShareGroupShard
from ottla.replica.shared_partition import SharedPartition
from ottla.share import shard, share_partition
from ottla.share.acquisition import Acquisition
from ottla.share.in_flight import WRITTEN, Run
from ottla.share.record_state import STATE_AFTER, AckType, RecordState
from ottla.share.shard import ShareShard
from ottla.share.share_partition import SharePartition
from ottla.share.stored import NO_EPOCH, Snapshot, Update
from simulation.pace import Pace
from simulation.planted import Patch, Sighting


def what_members_say_is_not_written(patch: Patch) -> None:
    """It is answered all the same: the next leader hands the records out again."""
    right = SharePartition.begin_write

    def begin_write(self: SharePartition) -> Any:
        return right(self)._replace(batches=())

    patch.setattr(SharePartition, "begin_write", begin_write)


def deliveries_have_no_limit(patch: Patch) -> None:
    """A record that is given back for the last time is handed out again."""
    patch.setattr(share_partition, "_after", lambda kind, run, settings: (STATE_AFTER[kind], None))
    patch.setattr(
        Acquisition, "_archive_used_up", lambda _, runs: any(run.is_available for run in runs)
    )


def locks_are_over_at_once(patch: Patch) -> None:
    """A record is given to others while a member has it."""
    right = Run.acquire

    def acquire(self: Run, member: str, lock_until_ms: int) -> None:
        right(self, member, lock_until_ms - 950)

    patch.setattr(Run, "acquire", acquire)


def updates_are_not_loaded(patch: Patch) -> None:
    """A new share coordinator knows the last snapshot only."""
    right = ShareShard.apply

    def apply(self: ShareShard, record: Any, offset: int, *given: Any) -> None:
        is_new = record.key in self.known
        before = self.known[record.key].state if is_new else None
        right(self, record, offset, *given)
        if before is not None and isinstance(record.value, Update):
            self.known[record.key].state = before

    patch.setattr(ShareShard, "apply", apply)


def snapshots_forget_what_is_in_flight(patch: Patch) -> None:
    """A snapshot has the start offset only, so that acknowledged records behind it are lost."""
    right = ShareShard._record

    def record(self: ShareShard, *given: Any) -> Any:
        made = right(self, *given)
        if isinstance(made.value, Snapshot):
            return made._replace(value=made.value._replace(batches=()))
        return made

    patch.setattr(ShareShard, "_record", record)


def the_older_delivery_wins(patch: Patch) -> None:
    """What is stored of a record is not replaced by what is said of it later."""
    patch.setattr(shard, "updated", lambda state, batches, start: state or batches)


def released_records_are_over(patch: Patch) -> None:
    """What a member gives back is delivered to nobody."""
    patch.setattr(
        share_partition,
        "_after",
        lambda kind, run, settings: (
            RecordState.ARCHIVED if kind is AckType.RELEASE else STATE_AFTER[kind],
            None,
        ),
    )


def a_new_coordinator_expires_nobody(patch: Patch) -> None:
    """The members of a group that is loaded have no session timeout until their next heartbeat."""
    patch.setattr(ShareGroupShard, "loaded", lambda *_: None)


PLANTED_SHARES: Final[dict[Callable[[Patch], None], Sighting]] = {
    what_members_say_is_not_written: Sighting(pace=Pace.SWIFT),
    deliveries_have_no_limit: Sighting(pace=Pace.SWIFT),
    locks_are_over_at_once: Sighting(1, pace=Pace.SWIFT),
    updates_are_not_loaded: Sighting(pace=Pace.SWIFT),
    snapshots_forget_what_is_in_flight: Sighting(pace=Pace.SWIFT),
    the_older_delivery_wins: Sighting(pace=Pace.SWIFT),
    released_records_are_over: Sighting(pace=Pace.SWIFT),
    a_new_coordinator_expires_nobody: Sighting(2, pace=Pace.SWIFT),
}


def letters_of_a_leader_before_are_forgotten(patch: Patch) -> None:
    """A new leader takes records whose dead letter is not written for archived."""
    right = SharePartition._load

    def load(self: SharePartition, batches: Any) -> None:
        right(self, batches)
        for run in self.runs:
            if run.state is RecordState.ARCHIVING:
                run.settle(RecordState.ARCHIVED, WRITTEN)

    patch.setattr(SharePartition, "_load", load)


def records_are_stored_as_archived_before_their_letters(patch: Patch) -> None:
    """So the next leader does not know that there are letters to write."""
    right = SharePartition.begin_write

    def begin_write(self: SharePartition) -> Any:
        write = right(self)
        archived = [
            each._replace(state=RecordState.ARCHIVED)
            if each.state is RecordState.ARCHIVING
            else each
            for each in write.batches
        ]
        return write._replace(batches=archived)

    patch.setattr(SharePartition, "begin_write", begin_write)


PLANTED_LETTERS: Final[dict[Callable[[Patch], None], Sighting]] = {
    letters_of_a_leader_before_are_forgotten: Sighting(pace=Pace.SWIFT),
    records_are_stored_as_archived_before_their_letters: Sighting(pace=Pace.SWIFT),
}
"""Of runs with `--letters`."""


def a_share_coordinator_deletes_nothing(patch: Patch) -> None:
    """It says that it has forgotten a state, which stays."""
    patch.setattr(ShareShard, "delete", lambda *_: None)


def a_deletion_forgets_the_first_partition_only(patch: Patch) -> None:
    """What is in the others outlives the group."""
    right = state_partitions.all_deleting

    def all_deleting(*given: Any) -> Any:
        states, partitions = right(*given)
        return states, {topic: numbers & {0} for topic, numbers in partitions.items()}

    patch.setattr(state_partitions, "all_deleting", all_deleting)


def a_leader_keeps_the_state_of_a_deleted_group(patch: Patch) -> None:
    """It does not ask whether it is still stored, and has nothing to write."""
    patch.setattr(SharedPartition, "check_state", lambda self: None)


def a_leader_writes_into_a_state_that_it_has_not_read(patch: Patch) -> None:
    """That of the next group of the name, as in Kafka."""
    right = ShareShard.write

    def write(self: ShareShard, key: Any, state_epoch: int, leader_epoch: int, *given: Any) -> None:
        known = self.known.get(key)
        if known is None:
            right(self, key, state_epoch, leader_epoch, *given)
            return
        state = known.state
        known.state = state._replace(leader_epoch=max(leader_epoch, state.leader_epoch))
        try:
            right(self, key, NO_EPOCH, leader_epoch, *given)
        finally:
            known.state = state

    patch.setattr(ShareShard, "write", write)


def states_of_deleted_topics_stay(patch: Patch) -> None:
    """A share coordinator keeps what groups had read of a topic that is gone."""
    patch.setattr(ShareShard, "topics_deleted", lambda *_: False)


PLANTED_DELETIONS: Final[dict[Callable[[Patch], None], Sighting]] = {
    a_share_coordinator_deletes_nothing: Sighting(pace=Pace.SWIFT),
    a_deletion_forgets_the_first_partition_only: Sighting(pace=Pace.SWIFT),
    a_leader_keeps_the_state_of_a_deleted_group: Sighting(pace=Pace.SWIFT),
    a_leader_writes_into_a_state_that_it_has_not_read: Sighting(pace=Pace.SWIFT),
    states_of_deleted_topics_stay: Sighting(pace=Pace.SWIFT),
}
"""Of runs with `--deletions`."""
