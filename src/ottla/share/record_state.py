"""The states of a record in a share group, and how a member ends its delivery (KIP-932, KIP-1222).

    AVAILABLE -> ACQUIRED -> ACKNOWLEDGED   accepted
                          -> AVAILABLE      released, or its lock is over
                          -> ARCHIVED       rejected, or delivered too often
                          -> ARCHIVING      the same in a group with dead letters (KIP-1191)
    ARCHIVING             -> ARCHIVED       its dead letter is written, or cannot be
    AVAILABLE             -> ARCHIVED       the record is not in the log any more

The numbers are those of requests and of the records of `__share_group_state`; 1 is never stored.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class RecordState(IntEnum):
    """Where a record is in its group."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class AckType(IntEnum):
    """What a member says of a record that it has acquired; GAP: there is no such record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


STATE_AFTER: Final = {
    AckType.GAP: RecordState.ARCHIVED,
    AckType.ACCEPT: RecordState.ACKNOWLEDGED,
    AckType.RELEASE: RecordState.AVAILABLE,
    AckType.REJECT: RecordState.ARCHIVED,
}
"""RENEW leaves the record ACQUIRED."""
TERMINAL: Final = frozenset((RecordState.ACKNOWLEDGED, RecordState.ARCHIVED))
"""The record is never delivered again, and nothing is to be done for it any more."""


class Cause(StrEnum):
    """Why a record is archived, in the words of its dead letter (Kafka's ShareGroupDLQManager)."""

    REJECTED = "Offset rejected by client."
    DELIVERED_TOO_OFTEN = "Offset delivery count exceeded the threshold."


def stored_state(number: int) -> RecordState:
    """The state with this number in a stored batch. Raises ValueError for others."""
    state = RecordState(number)
    if state is RecordState.ACQUIRED:
        raise ValueError("an acquired record is not stored")
    return state
