"""The lines of a journey about share groups: who has the message, and what became of it."""

from __future__ import annotations

from typing import Final

from ottla.journey.words.clock import Clock
from ottla.journey.words.line import BAD, GOOD, NAME, WAITING, WEAK, Branch, Document

STATES: Final = {
    "not_yet": ("  not yet", WAITING, ": no member has had it"),
    "available": ("  given back", WAITING, ": it waits for the next member"),
    "accepted": ("  accepted", GOOD, ""),
    "rejected": ("  rejected", BAD, ""),
    "too_often": ("  archived", BAD, ": it was delivered as often as may be"),
    "missing": ("  passed", GOOD, ": a member found no such record"),
    "archiving": ("  archiving", WAITING, ": its dead letter is being written"),
    "done": (
        "  done",
        GOOD,
        ": accepted, rejected or archived, or the group began behind it; which one is not recorded"
        " any more",
    ),
    "unknown": ("  not known", WAITING, ": its state could not be read"),
}
EVENTS: Final = {
    "acquired": "acquired",
    "accepted": "accepted",
    "released": "released",
    "rejected": "rejected",
    "renewed": "kept for longer",
    "missing": "not found",
    "lock_ended": "taken back: its lock ended",
    "member_left": "taken back: its session ended",
    "not_stored": "what was said could not be stored",
    "too_often": "archived: it was delivered as often as may be",
    "letter_written": "dead letter written",
    "letter_given_up": "dead letter given up: the broker's log says why",
}


def grow_shared(branch: Branch, group: Document, clock: Clock) -> None:
    """The line of one share group, and below it what happened."""
    name = (group["group"], NAME)
    times = f"  (delivery {group['delivery_count']})" if group["delivery_count"] else ""
    if group["state"] == "acquired":
        since = "" if group["since_ms"] is None else f" since {clock.at(group['since_ms'])}"
        until = ""
        if group["lock_until_ms"] is not None:
            until = f", until {clock.at(group['lock_until_ms'])}"
        said = branch.add(
            name, ("  acquired", WAITING), f" by {group['member']}{since}{until}", (times, WEAK)
        )
    else:
        word, tone, why = STATES[group["state"]]
        said = branch.add(name, (word, tone), why, (times, WEAK))
    letter = group["dead_letter"]
    if letter is not None and letter["written"]:
        said.add(("its dead letter is in ", ""), (letter["topic"], NAME))
    if group["forgotten_before_ms"] is not None:
        before = clock.at(group["forgotten_before_ms"])
        said.add((f"what happened before {before} is not kept any more", WEAK))
    for event in group["events"]:
        by = f"  by {event['member']}" if event["member"] else ""
        count = f"  (delivery {event['delivery_count']})" if event["what"] == "acquired" else ""
        said.add(f"{clock.at(event['at_ms'])}  {EVENTS[event['what']]}", (f"{by}{count}", WEAK))
