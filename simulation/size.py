"""How many clients a run has. Pure.

Most bugs need few clients, so most runs have few, at least one of each kind that it has; a full run
has all of them. In a smaller transactional run the clients without transactions are as few as
possible, and often all transactional ids do the same.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from simulation.pace import Pace


class Size(NamedTuple):
    """The number of clients of each kind, at most."""

    partitions: int
    """Of the topic; a fault may add one."""
    producers: int
    """Of each partition."""
    members: int
    """Of the group."""
    transfers: int
    """Transactional ids that commit offsets only."""
    writers: int
    """Transactional ids that write records."""


LARGEST: Final = Size(2, 2, 3, 2, 2)
TRANSACTIONAL: Final = ((1, 0), (1, 0), (2, 0), (0, 1), (0, 1), (0, 1), (0, 2), (1, 1))
"""Transfers and writers of a smaller run."""


def size_of(seed: int, pace: Pace, *, transactions: bool, logs: bool = False) -> Size:
    """The size of a seed's run at this pace. `logs`: it needs a writer."""
    if pace is Pace.FULL:
        return LARGEST if transactions or not logs else LARGEST._replace(transfers=0)
    random = Random(f"{seed} size")
    if transactions:
        size = Size(1, 1, random.choice((1, 1, 2)), *random.choice(TRANSACTIONAL))
        return size._replace(writers=max(1, size.writers)) if logs else size
    if logs:
        return Size(1, 1, 1, 0, 1)
    return Size(2, random.choice((1, 1, 1, 2)), random.choice((1, 2, 2, 3)), 0, 0)
