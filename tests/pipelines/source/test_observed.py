"""The offsets between which rejected rows lie, from what Spark counted."""

from __future__ import annotations

from ottla.pipelines.source.observed import BLOCK, ranges_of


def test_the_first_block_and_the_end_of_the_last_of_each_partition() -> None:
    """Spark collects a set: the blocks come in any order."""
    found = ranges_of([(0, 5), (3, 0), (0, 2), (0, 9)])
    assert found == {0: (2 * BLOCK, 10 * BLOCK), 3: (0, BLOCK)}


def test_offsets_beyond_31_bits() -> None:
    block = (1 << 40) // BLOCK
    assert ranges_of([(1, block)]) == {1: (1 << 40, (1 << 40) + BLOCK)}


def test_without_rejected_rows_there_is_nothing() -> None:
    assert ranges_of([]) == {}
