"""Bugs to plant in the log's modules, as patches: the model must find each of them.

Those here are in modules that are never compiled; `planted_in_compiled` has the others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from tests.log.model.run import run

from ottla.log import (
    cleaning,
    flush,
    opening,
    producer_snapshot,
    producers,
    recovery,
    retention,
    truncation,
)
from ottla.log.flush import FlushTask
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.log import Log
from ottla.log.producer_state import LARGEST_OFFSET, Producer
from ottla.log.transaction_index import TransactionIndex
from ottla.records.build import rebuild_batch
from ottla.records.iterate import iterate_records
from ottla.storage.checkpoint_files import LOG_STARTS
from ottla.storage.log_store import CheckpointTask, LogStore


class Patch(Protocol):
    """The part of pytest's `monkeypatch` that is used here."""

    def setattr(self, target: Any, name: str, value: Any) -> None:
        """Replace an attribute until the end of a test."""


def first_seed(plant: Callable[[Patch], None], patch: Patch, below: int, folder: Path) -> int:
    """The first seed that finds the bug; -1 if none does."""
    plant(patch)
    return next((seed for seed in range(below) if run(seed, folder).violation is not None), -1)


def nothing(*_: Any, **__: Any) -> None:
    """What a step that was left out does."""


# Truncation.


def snapshots_outlive_a_truncation(patch: Patch) -> None:
    """A snapshot above the log's new end stays."""
    patch.setattr(truncation, "remove_snapshots", nothing)


def producers_outlive_a_truncation(patch: Patch) -> None:
    """A cut log still knows the producers of what is gone."""
    right = truncation._set_end

    def set_end(log: Log, offset: int) -> None:
        known = log.loaded_producers
        right(log, offset)
        log.set_producers(known)

    patch.setattr(truncation, "_set_end", set_end)


def aborted_transactions_outlive_a_truncation(patch: Patch) -> None:
    """The transaction index keeps what was aborted above the new end."""
    patch.setattr(TransactionIndex, "keep", nothing)


def epochs_outlive_a_truncation(patch: Patch) -> None:
    """Leader epochs that began above the new end stay."""
    patch.setattr(LeaderEpochs, "truncate_from_end", nothing)


def the_end_in_a_gap_is_forgotten(patch: Patch) -> None:
    """After a cut in a gap, a restart ends the log at its last batch."""
    patch.setattr(truncation, "_keep_end", nothing)


def segments_go_from_the_first_on(patch: Patch) -> None:
    """A truncation removes the first of the segments first: a crash leaves a hole."""
    right = retention.take_out
    patch.setattr(truncation, "take_out", lambda log, given: right(log, list(given)[::-1]))


# Starts.


def a_bad_batch_is_recovered(patch: Patch) -> None:
    """Recovery does not look at checksums."""
    patch.setattr(recovery, "ensure_crc", nothing)


def aborted_transactions_are_not_recovered(patch: Patch) -> None:
    """Recovery leaves the transaction index empty."""
    right = producers.note_marker
    patch.setattr(
        recovery, "note_marker", lambda state, header, batch, _: right(state, header, batch, None)
    )


def replaced_segments_stay(patch: Patch) -> None:
    """A start after a crash in a swap keeps the segments that were compacted away."""
    patch.setattr(opening, "_remove_covered", nothing)


def an_unfinished_compaction_counts(patch: Patch) -> None:
    """A start takes over what a compaction had written when it was killed."""
    right = opening._settle

    def settle(folder: str, listing: Any, *others: Any) -> None:
        listing.unfinished = [name for name in listing.unfinished if "cleaned" not in name]
        right(folder, listing, *others)

    patch.setattr(opening, "_settle", settle)


def what_was_recovered_is_not_synced(patch: Patch) -> None:
    """A clean stop trusts indexes that a power failure may still undo."""
    patch.setattr(opening, "_sync_later", nothing)


def an_old_recovery_point_stays(patch: Patch) -> None:
    """A start leaves a recovery point that is above the log's end in its file."""
    patch.setattr(LogStore, "_is_above", lambda *_: False)


def the_start_is_forgotten(patch: Patch) -> None:
    """The checkpoints do not have the log's start."""
    right = CheckpointTask.__init__

    def init(self: CheckpointTask, *given: Any) -> None:
        right(self, *given)
        self._offsets[LOG_STARTS] = {}

    patch.setattr(CheckpointTask, "__init__", init)


# Producers.


def sequences_are_forgotten(patch: Patch) -> None:
    """A snapshot does not have the producers' last batches: a duplicate is appended again."""
    right = producer_snapshot._producer

    def producer(*fields: Any) -> Producer:
        made = right(*fields)
        made.batches.clear()
        return made

    patch.setattr(producer_snapshot, "_producer", producer)


def open_transactions_are_forgotten(patch: Patch) -> None:
    """A snapshot does not have the open transactions."""
    right = producer_snapshot._producer

    def producer(*fields: Any) -> Producer:
        made = right(*fields)
        made.transaction_start_offset = -1
        return made

    patch.setattr(producer_snapshot, "_producer", producer)


def the_batches_after_a_snapshot_are_not_read(patch: Patch) -> None:
    """The producers are those of the latest snapshot."""
    patch.setattr(producers, "replay_segment", nothing)


# The disk.


def a_flush_syncs_nothing(patch: Patch) -> None:
    """The recovery point moves, and the batches are only in the page cache."""
    patch.setattr(flush, "sync_data", nothing)


def a_failed_fsync_is_tried_again(patch: Patch) -> None:
    """The second one succeeds, and what the kernel has dropped counts as synced."""
    patch.setattr(flush, "_check_synced", nothing)


def a_flush_forgets_cuts(patch: Patch) -> None:
    """A flush from before a truncation moves the recovery point past what came after it."""

    def apply(self: FlushTask) -> None:
        self.log.recovery_point = min(self.up_to_offset, self.log.end_offset)

    patch.setattr(FlushTask, "apply", apply)


def retention_ignores_the_high_watermark(patch: Patch) -> None:
    """Retention removes records that are not committed."""
    right = retention.expired_segments

    def expired_segments(log: Log, *, now_ms: int, high_watermark: int) -> Any:
        return right(log, now_ms=now_ms, high_watermark=LARGEST_OFFSET)

    patch.setattr(retention, "expired_segments", expired_segments)


# Compaction.


def compaction_drops_a_live_key(patch: Patch) -> None:
    """Of a batch with several records the last one goes, too."""
    right = cleaning.keep_batch

    def keep_batch(header: Any, batch: Any, *others: Any) -> Any:
        kept = right(header, batch, *others)
        records = list(iterate_records(kept)) if kept is not None else []
        return rebuild_batch(header, records[:-1]) if len(records) > 1 else kept

    patch.setattr(cleaning, "keep_batch", keep_batch)


def compaction_drops_tombstones_at_once(patch: Patch) -> None:
    """A consumer that is behind does not see that a key was deleted."""
    right = cleaning.keep_batch

    def keep_batch(header: Any, batch: Any, *others: Any) -> Any:
        kept = right(header, batch, *others)
        if kept is None:
            return None
        live = [each for each in iterate_records(kept) if each.value is not None]
        return rebuild_batch(header, live)

    patch.setattr(cleaning, "keep_batch", keep_batch)


def compaction_drops_markers(patch: Patch) -> None:
    """A marker goes before the batches of its transaction."""
    patch.setattr(cleaning, "keep_marker", nothing)


def compaction_forgets_producers(patch: Patch) -> None:
    """The last batch of an active producer goes with its records."""
    patch.setattr(cleaning, "_bare_header", nothing)


PLANTED: Final[tuple[Callable[[Patch], None], ...]] = (
    snapshots_outlive_a_truncation,
    producers_outlive_a_truncation,
    aborted_transactions_outlive_a_truncation,
    epochs_outlive_a_truncation,
    the_end_in_a_gap_is_forgotten,
    segments_go_from_the_first_on,
    a_bad_batch_is_recovered,
    aborted_transactions_are_not_recovered,
    an_unfinished_compaction_counts,
    an_old_recovery_point_stays,
    the_start_is_forgotten,
    sequences_are_forgotten,
    open_transactions_are_forgotten,
    the_batches_after_a_snapshot_are_not_read,
    a_flush_syncs_nothing,
    a_failed_fsync_is_tried_again,
    a_flush_forgets_cuts,
    retention_ignores_the_high_watermark,
    compaction_drops_a_live_key,
    compaction_drops_tombstones_at_once,
    compaction_drops_markers,
    compaction_forgets_producers,
)

RARE: Final[tuple[Callable[[Patch], None], ...]] = (
    replaced_segments_stay,
    what_was_recovered_is_not_synced,
)
"""Found only in hundreds of lives."""
