"""How much time a run takes, in virtual time. Pure.

A brisk run has the faults of its seed in half the time, and the timeouts by which the cluster and
its clients notice them are half as long: sessions, the lag of replicas, transactions. A swift run
has them in a quarter of the time. So they show as much for less work. Other times stay as they are,
such as that after which a proposal is sent again; what needs them happens in full runs.
"""

from __future__ import annotations

from enum import Enum
from random import Random
from typing import Final

FULL_SHARE: Final = 0.02
"""How many of the seeds have a full run."""
BRISK_SHARE: Final = 0.13
"""How many have a brisk one; all others have a swift one."""


class Pace(Enum):
    """The value divides the times of a full run."""

    FULL = 1
    BRISK = 2
    SWIFT = 4

    def ms(self, full_ms: int) -> int:
        """A duration, by that in a full run."""
        return full_ms // self.value

    def s(self, full_s: float) -> float:
        """The same in seconds."""
        return full_s / self.value


def pace_of(seed: int) -> Pace:
    """The pace of a seed's run, unless the caller wants another one."""
    drawn = Random(f"{seed} pace").random()
    if drawn < FULL_SHARE:
        return Pace.FULL
    return Pace.BRISK if drawn < FULL_SHARE + BRISK_SHARE else Pace.SWIFT
