"""The states of a transaction and how it may move between them.

               add partitions, offsets          commit
    Empty ───────────────────────► Ongoing ─────────────► PrepareCommit ──► CompleteCommit
      ▲ │                           ▲  │                                         │ │ │
      │ │                           │  │ abort, timeout, a new producer          │ │ │
      │ │                           │  └────────────────► PrepareAbort ──► CompleteAbort
      │ │ abort (version 2)         │                          ▲                 │ │ │
      │ └───────────────────────────┼──────────────────────────┘                 │ │ │
      │            add partitions   │                          │ abort (version 2) │ │
      │                             └──────────────────────────┼───────────────────┘ │
      └────────────────────────────────────────────────────────┴─────────────────────┘
             InitProducerId

PrepareCommit and PrepareAbort are decisions that stand: from there on the coordinator, or the next
one, writes the markers, until every partition has its marker. Empty and Complete* may expire.

Kafka's coordinator has two more states, which it never stores: PrepareEpochFence (here fencing and
abort are one step) and Dead (here an id that expires is removed in one step).
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class TransactionState(Enum):
    """The value is the name that clients get."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


EMPTY: Final = TransactionState.EMPTY
ONGOING: Final = TransactionState.ONGOING
PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
PREPARE_ABORT: Final = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT: Final = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT: Final = TransactionState.COMPLETE_ABORT

PREVIOUS_STATES: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    EMPTY: frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT}),
    ONGOING: frozenset({ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT}),
    PREPARE_COMMIT: frozenset({ONGOING}),
    PREPARE_ABORT: frozenset({ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT}),
    COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
    COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
}
"""To each state: the states that it may be reached from."""

PREPARED: Final = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
"""The outcome is decided; markers are being written."""
AT_REST: Final = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
"""No transaction is open: a new one may begin, or the id expire."""
