"""The offsets between which rejected rows lie, from what Spark counted."""

from __future__ import annotations

from ottla.pipelines.source.observed import BLOCK, ranges_of


class Row:
    """A row of Spark's JVM."""

    def __init__(self, partition: int, block: int) -> None:
        self.values = partition, block

    def getInt(self, index: int) -> int:  # noqa: N802 - Java's name
        assert index == 0
        return self.values[0]

    def getLong(self, index: int) -> int:  # noqa: N802
        assert index == 1
        return self.values[1]


class Rows:
    """A sequence of Scala's."""

    def __init__(self, *rows: tuple[int, int]) -> None:
        self.rows = [Row(*row) for row in rows]

    def size(self) -> int:
        return len(self.rows)

    def apply(self, index: int) -> Row:
        return self.rows[index]


def test_the_first_block_and_the_end_of_the_last_of_each_partition() -> None:
    """Spark collects a set: the blocks come in any order."""
    found = ranges_of(Rows((0, 5), (3, 0), (0, 2), (0, 9)))
    assert found == {0: (2 * BLOCK, 10 * BLOCK), 3: (0, BLOCK)}


def test_offsets_beyond_31_bits() -> None:
    block = (1 << 40) // BLOCK
    assert ranges_of(Rows((1, block))) == {1: (1 << 40, (1 << 40) + BLOCK)}


def test_without_rejected_rows_there_is_nothing() -> None:
    assert ranges_of(Rows()) == {}
