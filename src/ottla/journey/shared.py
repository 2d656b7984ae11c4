"""The part of the journey's document about share groups: who has the message, what became of it.

    "shared": [{"group": "workers", "state": "acquired", "member": "id", "since_ms": 1795259617608,
                "lock_until_ms": 1795259647608, "delivery_count": 2,
                "dead_letter": null or {"topic": "dlq.x", "written": true},
                "events": [{"at_ms", "what", "member", "delivery_count"}],
                "forgotten_before_ms": null}]

`state`:

    not_yet     nobody has had it
    available   it was given back, and waits for the next member
    acquired    a member has it
    accepted, rejected, too_often (archived after as many deliveries as may be), missing (a member
                said that there is no such record)
    archiving   rejected or too_often, and its dead letter is being written
    done        one of these, or the group began behind it: what it was is not recorded any more
    unknown     the state could not be read

`what` of an event: as `ottla.share.note.What`. What happened is kept by the leader in memory: it
begins with its leadership, and of a busy group only the last is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.journey.moment import Document
from ottla.share.note import Note, What
from ottla.share.record_state import RecordState

ENDS: Final = {
    What.ACCEPTED: "accepted",
    What.REJECTED: "rejected",
    What.TOO_OFTEN: "too_often",
    What.MISSING: "missing",
}
LETTERS: Final = (What.LETTER_WRITTEN, What.LETTER_GIVEN_UP)
MAX_GROUPS: Final = 100
"""That are told, by name; the others are left out."""
MAX_EVENTS: Final = 50
"""Of one group, the last ones: a record may be renewed for hours."""


class SharedFacts(NamedTuple):
    """What is known of the message in one share group. `start_offset` None: it could not be read.
    `state` None: it is in no run in flight."""

    group: str
    start_offset: int | None
    next_offset: int = 0
    state: RecordState | None = None
    delivery_count: int = 0
    member: str = ""
    lock_until_ms: int | None = None
    notes: Sequence[tuple[int, Note]] = ()
    """With their times, in order."""
    forgotten_before_ms: int | None = None


def explain_shared(groups: Sequence[SharedFacts], offset: int) -> list[Document]:
    """One entry for each group, in order."""
    return [_explain(each, offset) for each in groups]


def _explain(facts: SharedFacts, offset: int) -> Document:
    state = _state(facts, offset)
    acquired = [at_ms for at_ms, note in facts.notes if note.what is What.ACQUIRED]
    letters = [note for _, note in facts.notes if note.what in LETTERS]
    letter = None
    if letters:
        letter = {"topic": letters[-1].who, "written": letters[-1].what is What.LETTER_WRITTEN}
    count = facts.delivery_count
    if not count and facts.notes:
        count = facts.notes[-1][1].delivery_count
    has_it = state == "acquired"
    return {
        "group": facts.group,
        "state": state,
        "member": facts.member if has_it else None,
        "since_ms": acquired[-1] if has_it and acquired else None,
        "lock_until_ms": facts.lock_until_ms if has_it else None,
        "delivery_count": count,
        "dead_letter": letter,
        "events": [
            {
                "at_ms": at_ms,
                "what": note.what.value,
                "member": note.who if note.what not in (*LETTERS, What.TOO_OFTEN) else None,
                "delivery_count": note.delivery_count,
            }
            for at_ms, note in facts.notes[-MAX_EVENTS:]
        ],
        "forgotten_before_ms": facts.forgotten_before_ms,
    }


def _state(facts: SharedFacts, offset: int) -> str:
    if facts.start_offset is None:
        return "unknown"
    match facts.state:
        case RecordState.ACQUIRED:
            return "acquired"
        case RecordState.ARCHIVING:
            return "archiving"
        case RecordState.AVAILABLE:
            # A gap: a leader before this one had handed it out, and nothing is stored of it.
            return "available" if facts.delivery_count else "not_yet"
        case RecordState.ACKNOWLEDGED:
            return "accepted"
    if facts.state is None and offset >= facts.next_offset:
        return "not_yet"
    ended = [ENDS[note.what] for _, note in facts.notes if note.what in ENDS]
    return ended[-1] if ended else "done"
