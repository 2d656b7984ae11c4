"""Whatever happens to a real log, its cleaner and a pipeline: each journey is true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from tests.journey.model.statements import UntrueError
from tests.journey.model.stored_life import live_stored

from ottla.journey import explain, retention_rules, table_rows, transactions
from ottla.journey.offset_history import delivery_of
from ottla.journey.retention_rules import Counts
from ottla.tracing import gather_facts, superseding
from ottla.tracing.key_search import EVERYTHING
from ottla.tracing.superseding import Superseding
from ottla.tracing.transaction_search import find_marker

LIVES: Final = 24
AT_ONCE: Final = 12
MORE: Final = 3000
FAILED: Final = (24, 494, 735)
"""Lives in which a journey once said what is not true."""
SEEDS: Final = 60
Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("first", range(0, LIVES, AT_ONCE))
def test_a_journey_of_a_stored_record_says_nothing_untrue(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + AT_ONCE):
        live_stored(seed, tmp_path)


@pytest.mark.parametrize("seed", FAILED)
def test_what_was_untrue_once(seed: int, tmp_path: Path) -> None:
    live_stored(seed, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("first", range(LIVES, MORE, 300))
def test_more_journeys_of_stored_records(first: int, tmp_path: Path) -> None:
    for seed in range(first, min(first + 300, MORE)):
        live_stored(seed, tmp_path)


# Untruths to plant.


def an_aborted_record_supersedes(patch: pytest.MonkeyPatch) -> None:
    async def find(*_: Any) -> Any:
        return None, EVERYTHING, 1

    patch.setattr(superseding, "find_marker", find)


def what_is_open_supersedes(patch: pytest.MonkeyPatch) -> None:
    """The search does not end at the last stable offset."""
    find = superseding.find_superseding

    async def to_the_end(log: Any, key: bytes, offset: int, _: int) -> Superseding:
        return await find(log, key, offset, log.end_offset)

    patch.setattr(gather_facts, "find_superseding", to_the_end)


def compaction_keeps_what_has_no_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(explain, "_counts", lambda *_: Counts.BY_KEY)


def a_superseded_tombstone_has_no_horizon(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retention_rules, "_soonest", lambda rule: rule.reason["kind"] != "superseded")


def an_old_marker_ends_a_transaction(patch: pytest.MonkeyPatch) -> None:
    """The last marker of a producer is that of all its transactions."""

    async def find(log: Any, header: Any, budget_bytes: int) -> Any:
        found = await find_marker(log, header, budget_bytes)
        last = found
        while found[0] is not None:
            last, after = found, found[0].offset + 1
            rest: Any = SimpleNamespace(base_offset=after, producer_id=header.producer_id)
            found = await find_marker(log, rest, budget_bytes)
        return last

    patch.setattr("ottla.tracing.transaction_search.find_marker", find)


def the_stable_end_is_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    say = transactions.read_committed

    def said(header: Any, offset: int, high_watermark: int, facts: Any) -> Any:
        return say(header, offset, high_watermark, facts) | {"last_stable_offset": high_watermark}

    patch.setattr(explain, "read_committed", said)


def every_pipeline_reads_what_is_committed(patch: pytest.MonkeyPatch) -> None:
    def committed(*args: Any) -> Any:
        found = delivery_of(*args)
        return found and found._replace(reads_committed=True)

    patch.setattr(explain, "delivery_of", committed)


def a_row_of_aborted_records(patch: pytest.MonkeyPatch) -> None:
    """The key's other records count, whatever became of their transactions."""
    row_of = table_rows.row_of

    def row(to: Any, history: Any, offset: int, batches_of: Any) -> Any:
        def every(at: int) -> Any:
            return batches_of(at) or table_rows.Batches(1 << 20, 1 << 20, 1, 1)

        return row_of(to, history, offset, every)

    patch.setattr(explain, "row_of", row)


def a_history_has_one_row(patch: pytest.MonkeyPatch) -> None:
    row_of = table_rows.row_of
    patch.setattr(explain, "row_of", lambda to, *more: row_of(to._replace(rows="upsert"), *more))


def nothing_is_rejected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(explain, "rejection_of", lambda *_: None)


def a_compacted_record_was_delivered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(explain, "_may_lack", lambda *_: False)


def a_delivery_has_the_batch_before(patch: pytest.MonkeyPatch) -> None:
    def before(*args: Any) -> Any:
        found = delivery_of(*args)
        if found is None:
            return None
        batch = max(found.first_batch - 1, 0)
        return found._replace(first_batch=batch, last_batch=batch)

    patch.setattr("ottla.journey.offset_history.delivery_of", before)


PLANTED: Final[tuple[Plant, ...]] = (
    an_aborted_record_supersedes,
    what_is_open_supersedes,
    compaction_keeps_what_has_no_key,
    a_superseded_tombstone_has_no_horizon,
    an_old_marker_ends_a_transaction,
    the_stable_end_is_the_high_watermark,
    every_pipeline_reads_what_is_committed,
    a_row_of_aborted_records,
    a_history_has_one_row,
    nothing_is_rejected,
    a_compacted_record_was_delivered,
    a_delivery_has_the_batch_before,
)


RARE: Final[dict[Plant, int]] = {a_superseded_tombstone_has_no_horizon: 20}
"""What few lives find: the seed to begin with."""


@pytest.mark.parametrize("plant", PLANTED, ids=[plant.__name__ for plant in PLANTED])
def test_a_planted_untruth_is_found(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch)
    start = RARE.get(plant, 0)
    assert any(_is_found(seed, tmp_path) for seed in range(start, start + SEEDS))


def _is_found(seed: int, folder: Path) -> bool:
    try:
        live_stored(seed, folder)
    except UntrueError:
        return True
    return False
