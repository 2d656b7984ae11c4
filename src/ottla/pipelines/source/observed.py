"""What Spark counts of a source while it reads a batch: its rows, and where rejected rows are.

Spark calls these observed metrics. The offsets are told in blocks of BLOCK offsets, so that a batch
full of rejected rows stays small in the driver: one entry for each block and not for each row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column

READ: Final = "read"
BLOCKS: Final = "blocks"
BLOCK: Final = 64


def observed_blocks(reason: str) -> list[Column]:
    """Return what to observe: all rows, and the blocks of the rows that have a reason."""
    from pyspark.sql import functions as F  # noqa: N812

    block = F.struct("partition", (F.col("offset") / BLOCK).cast("bigint"))
    return [
        F.count(F.lit(1)).alias(READ),
        F.collect_set(F.when(F.col(reason).isNotNull(), block)).alias(BLOCKS),
    ]


def ranges_of(blocks: Iterable[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return for each partition with rejected rows the first block's start and the last's end.

    `blocks` is the observed value, of (partition, block).
    """
    found: dict[int, tuple[int, int]] = {}
    for partition, block in blocks:
        first, end = found.get(partition, (block * BLOCK, block * BLOCK))
        found[partition] = (min(first, block * BLOCK), max(end, (block + 1) * BLOCK))
    return found
