"""What one round of compaction may remove, and what it must (KIP-58, KIP-98, KIP-534)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tests.log.model.batches import Batch
from tests.log.model.lineage import Ended, Known
from tests.log.model.violation import ensure


@dataclass(frozen=True, slots=True)
class Round:
    """One round, as it was planned."""

    before: list[Batch]
    start: int
    ended: list[Ended]
    active: dict[int, Known]
    """The producers that the log knows."""
    first_dirty: int
    now_ms: int
    delete_retention_ms: int


def check_cleaned(round: Round, after: list[Batch], clean_to: int, *, is_complete: bool) -> None:
    """`after` is what remains. With `is_complete` the round ended: below `clean_to` no record is
    left that a later one replaces.
    """
    remaining = {batch.base: batch for batch in after}
    known = {batch.base for batch in round.before}
    for batch in after:
        ensure(batch.base in known, f"compaction made {batch}")
    latest = _latest(round, clean_to)
    for batch in round.before:
        now = remaining.get(batch.base)
        if now is not None:
            _check_header(round, batch, now)
        if batch.is_data:
            _check_data(round, batch, now, latest, clean_to if is_complete else -1)
        elif now is None or now.marker is None:
            horizon_ms = batch.header.delete_horizon_ms
            may_go = batch.marker is None or (horizon_ms is not None and horizon_ms <= round.now_ms)
            ensure(may_go, f"compaction removed the marker {batch}")
    _check_transactions(round, remaining)
    _check_producers(round, remaining.values())


def _latest(round: Round, clean_to: int) -> dict[bytes, int]:
    """The last offset of each key that may replace earlier ones."""
    latest: dict[bytes, int] = {}
    for batch in round.before:
        if batch.is_data and not _is_aborted(round, batch):
            for record in batch.records:
                if record.key is not None and round.first_dirty <= record.offset < clean_to:
                    latest[record.key] = record.offset
    return latest


def _is_aborted(round: Round, batch: Batch) -> bool:
    return batch.header.is_transactional and any(
        each.producer_id == batch.producer_id
        and each.first <= batch.base < each.marker
        and each.is_aborted
        for each in round.ended
    )


def _check_header(round: Round, before: Batch, now: Batch) -> None:
    old, new = before.header, now.header
    ensure(
        (before.last, old.leader_epoch, old.producer_id, old.producer_epoch, old.base_sequence)
        == (now.last, new.leader_epoch, new.producer_id, new.producer_epoch, new.base_sequence),
        f"compaction made {now} of {before}",
    )
    if new.delete_horizon_ms != old.delete_horizon_ms and now.header.count:
        due_ms = round.now_ms + round.delete_retention_ms
        ensure(
            old.delete_horizon_ms is None and new.delete_horizon_ms == due_ms,
            f"{now} has the delete horizon {new.delete_horizon_ms} instead of {due_ms}",
        )


def _check_data(
    round: Round, batch: Batch, now: Batch | None, latest: dict[bytes, int], clean_to: int
) -> None:
    kept = {record.offset: record for record in now.records} if now is not None else {}
    ensure(
        kept.keys() <= {record.offset for record in batch.records}, f"{now} has more than {batch}"
    )
    if _is_aborted(round, batch):
        return
    horizon_ms = batch.header.delete_horizon_ms
    for record in batch.records:
        replaced = record.key is None or latest.get(record.key, -1) > record.offset
        if record.offset in kept:
            ensure(kept[record.offset] == record, f"compaction changed {record}")
            must_go = replaced and record.offset < clean_to
            ensure(not must_go, f"{record} was replaced but is still there")
        else:
            due = horizon_ms is not None and horizon_ms <= round.now_ms and record.value is None
            ensure(replaced or due, f"compaction removed {record}, the last one of its key")


def _check_transactions(round: Round, remaining: dict[int, Batch]) -> None:
    for each in round.ended:
        if each.marker in remaining:
            continue
        for batch in remaining.values():
            is_open = (
                batch.producer_id == each.producer_id
                and batch.is_data
                and batch.last >= round.start
                and each.first <= batch.base < each.marker
            )
            ensure(not is_open, f"compaction removed the marker at {each.marker} of {batch}")


def _check_producers(round: Round, remaining: Iterable[Batch]) -> None:
    batches: Collection[Batch] = list(remaining)
    for producer_id, known in round.active.items():
        if known.traces:
            last = known.traces[-1].last_offset
            was_there = last >= round.start and any(batch.last == last for batch in round.before)
            is_there = any(batch.last == last for batch in batches)
            ensure(is_there or not was_there, f"producer {producer_id} lost its last batch, {last}")
