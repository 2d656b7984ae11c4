"""The states of a classic group and how it may move between them.

    Empty ──► PreparingRebalance ──► CompletingRebalance ──► Stable
      ▲             │    ▲  ▲                 │                │
      └─────────────┘    │  └─────────────────┘                │
                         └─────────────────────────────────────┘

and from each of them to Dead, when its partition moves to another broker.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class GroupState(Enum):
    """The value is the name that clients get."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY: Final = GroupState.EMPTY
PREPARING_REBALANCE: Final = GroupState.PREPARING_REBALANCE
COMPLETING_REBALANCE: Final = GroupState.COMPLETING_REBALANCE
STABLE: Final = GroupState.STABLE
DEAD: Final = GroupState.DEAD

PREVIOUS_STATES: Final[dict[GroupState, frozenset[GroupState]]] = {
    EMPTY: frozenset({PREPARING_REBALANCE}),
    PREPARING_REBALANCE: frozenset({EMPTY, COMPLETING_REBALANCE, STABLE}),
    COMPLETING_REBALANCE: frozenset({PREPARING_REBALANCE}),
    STABLE: frozenset({COMPLETING_REBALANCE}),
    DEAD: frozenset({EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD}),
}
"""To each state: the states that it may be reached from."""
