"""Why one group has not read the message: see `why_not_read` and `why_not_shared`."""

from __future__ import annotations

from typing import Final

from ottla.journey.formatting import format_elapsed
from ottla.journey.words.clock import Clock
from ottla.journey.words.line import BAD, GOOD, NAME, STEP, WAITING, Branch, Document
from ottla.journey.words.readers import DOUBTS

_TITLES: Final = {
    "read": "has read it",
    "not_yet": "has not read it",
    "missed": "has missed it",
    "set_back": "has passed it, and was set back",
    "not_known": "it is not known whether it has read it",
    "no_offset": "has committed nothing for this partition",
    "unknown": "not known",
    "available": "has given it back",
    "acquired": "has it, and is not done with it",
    "accepted": "has accepted it",
    "rejected": "has rejected it",
    "too_often": "has archived it: it was delivered as often as may be",
    "missing": "has passed it: a member found no such record",
    "archiving": "is archiving it: its dead letter is being written",
    "done": "is done with it; what it was is not recorded any more",
}
_ENDS: Final = {
    "accepted": GOOD,
    "missing": GOOD,
    "done": GOOD,
    "rejected": BAD,
    "too_often": BAD,
}
"""Of a share group."""
_PASSED: Final = "has passed it; whether it has read it is not known"


def grow_asked_group(top: Branch, document: Document) -> None:
    """The branch of the group that was asked for."""
    asked = document.get("asked_group")
    if asked is None:
        return
    is_certain = asked["state"] == "read" and not asked["reasons"]
    title = _TITLES[asked["state"]]
    if asked["state"] == "read" and not is_certain:
        title = _PASSED
    colour = GOOD if is_certain else _ENDS.get(asked["state"], WAITING)
    branch = top.add(("Group  ", STEP), (asked["group"], NAME), "  ", (title, colour))
    clock = Clock(document)
    for reason in asked["reasons"]:
        branch.add(format_reason(reason, document, clock))


def format_reason(reason: Document, document: Document, clock: Clock) -> str:
    """One reason in words."""
    match reason["why"]:
        case "not_written":
            return f"the message does not exist yet: the log ends at offset {reason['end_offset']}"
        case "coordinator_unknown":
            silent = ", ".join(map(str, reason["unanswered"])) or "none has answered"
            return f"its coordinator did not answer, perhaps broker {silent}"
        case "no_group":
            return "there is no such group; to list them: ottla group list"
        case "no_offset":
            return "it has committed nothing for this partition"
        case "forgotten":
            at = "" if reason["at_ms"] is None else f" at {clock.at(reason['at_ms'])}"
            by = "" if reason["reason"] is None else f" by {reason['reason']}"
            return f"its offset was removed{at}{by}"
        case "set_back":
            at = "" if reason["at_ms"] is None else f" at {clock.at(reason['at_ms'])}"
            return f"it was set back to offset {reason['to_offset']}{at}"
        case "doubt":
            return DOUBTS.get(reason["doubt"], "its commit came before the message, see above")
        case "not_replicated":
            return (
                "it is not replicated yet, so nobody can read it: the high watermark is "
                f"{reason['high_watermark']}"
            )
        case "not_visible":
            what = "of an aborted transaction" if reason["state"] == "aborted" else "a marker"
            return f"it is {what}: under {_level(reason)} nobody gets it"
        case "open_transaction":
            where = f"offset {reason['last_stable_offset']}, see Transaction"
            if reason["is_there"]:
                return f"under {_level(reason)} it waits at {where}"
            return f"under {_level(reason)} it will stop at {where}"
    return _format_group(reason, document, clock)


def _format_group(reason: Document, document: Document, clock: Clock) -> str:
    """A reason that lies in the group itself."""
    match reason["why"]:
        case "behind":
            word = "message" if reason["behind"] == 1 else "messages"
            at = ""
            if reason["committed_ms"] is not None:
                at = f", committed at {clock.at(reason['committed_ms'])}"
            return (
                f"{reason['behind']} {word} behind: its offset is {reason['committed_offset']}{at}"
            )
        case "no_members":
            if reason["is_simple"]:
                return "it has no members: its consumer assigns partitions to itself, or is gone"
            return "it has no members: no consumer reads as this group now"
        case "rebalancing":
            return f"its members are being assigned (state: {reason['state']})"
        case "not_assigned":
            word = "member" if reason["members"] == 1 else "members"
            return f"assigned to nobody: none of its {reason['members']} {word} has this partition"
        case "state_unknown":
            return "its share coordinator did not answer"
        case "left_out":
            return f"a journey tells {reason['told']} share groups, and it is not among them"
        case "lock":
            since = "" if reason["since_ms"] is None else f" since {clock.at(reason['since_ms'])}"
            until = ""
            if reason["lock_until_ms"] is not None:
                until = f", until {clock.at(reason['lock_until_ms'])} at the latest"
            return f"member {reason['member_id']} has it{since}{until}"
        case "given_back":
            word = "delivery" if reason["delivery_count"] == 1 else "deliveries"
            return f"after {reason['delivery_count']} {word} it waits for the next member"
        case "shared":
            if reason["members"] == 1:
                return "one member reads this partition, and has not fetched it yet"
            return f"{reason['members']} members read this partition, and none has fetched it yet"
    said = f"assigned to client {reason['client_id']} at {reason['host']}"
    if reason["committed_ms"] is None:
        return f"{said}, which has committed nothing for this partition"
    ago_ms = document["asked_ms"] - reason["committed_ms"]
    return f"{said}; the last commit is {format_elapsed(max(ago_ms, 0))} ago"


def _level(reason: Document) -> str:
    return f"{reason.get('setting', 'isolation.level')}=read_committed"
