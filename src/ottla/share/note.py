"""What happened to records of a share group, as its partition's decider notes it. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class What(StrEnum):
    """Written to JSON."""

    ACQUIRED = "acquired"
    ACCEPTED = "accepted"
    RELEASED = "released"
    REJECTED = "rejected"
    RENEWED = "renewed"
    MISSING = "missing"
    """The member says that there is no such record."""
    LOCK_ENDED = "lock_ended"
    MEMBER_LEFT = "member_left"
    NOT_STORED = "not_stored"
    """What the member had said could not be written: it has the record again."""
    TOO_OFTEN = "too_often"
    """It was delivered as often as may be, and is archived."""
    LETTER_WRITTEN = "letter_written"
    LETTER_GIVEN_UP = "letter_given_up"
    """The dead letter could not be written (KIP-1191)."""


class Note(NamedTuple):
    """Of the records from `first` to `last`. `who`: the member; of a dead letter its topic."""

    what: What
    first: int
    last: int
    who: str
    delivery_count: int
