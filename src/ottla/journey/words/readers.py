"""The lines of a journey about groups: who has read the message, who has perhaps, who has not.

A line says "read" only where it is certain that a member of the group committed past the message.
"""

from __future__ import annotations

from typing import Final

from ottla.journey.words.clock import Clock
from ottla.journey.words.line import BAD, GOOD, NAME, WAITING, WEAK, Branch, Document

NOT_REACHED: Final = frozenset({"not_yet", "missed"})
DOUBTS: Final = {
    "first_commit": "with its first commit; where it began is not recorded",
    "no_member": (
        "no member committed: a consumer that assigns partitions to itself has read it, or a reset "
        "skipped it"
    ),
    "outside": "no member of the group committed: most likely a reset, which skipped it",
    "not_recorded": "who committed, a member or a reset, is not recorded",
    "unordered": "perhaps before this message was there",
}
"""Why it is not known whether a group that passed a message has read it."""


def grow_reader(branch: Branch, group: Document, clock: Clock) -> None:
    """The line of a group that passed the message, and what became of its offset."""
    name, when, doubt = (group["group"], NAME), group["when"], group.get("doubt")
    if group["state"] == "not_known":
        said = branch.add(name, ("  not known", WAITING), _not_known(group, clock))
        if group.get("forgotten"):
            said.add(("its offset was removed", WAITING), _forgotten(group, clock))
        return
    parts: list[tuple[str, str] | str] = [name]
    parts.append(("  passed it  ", WAITING) if doubt else ("  read  ", GOOD))
    parts += [clock.moment(when), (clock.after(when), WEAK)]
    if doubt in DOUBTS:
        parts.append((f"  ({DOUBTS[doubt]})", WEAK))
    said = branch.add(*parts)
    if group.get("only_after_removal"):
        said.add(("committed past it only after its removal", WAITING), ": it may have missed it")
    if group["state"] == "set_back":
        back = group["set_back"]
        if back["at_ms"] is None:
            why = f": its offset is {back['to_offset']}; when it was set back is not recorded"
            said.add(("behind it again", WAITING), why)
        else:
            to = f" to offset {back['to_offset']} at {clock.at(back['at_ms'])}"
            said.add(("set back", WAITING), f"{to}, and has not reached this offset again")
    if group.get("forgotten"):
        said.add(("its offset was removed", WAITING), _forgotten(group, clock))
    if group.get("recorded_by") is not None and when["until_ms"] is not None:
        said.add((f"by the clock of broker {group['recorded_by']}, which coordinates it", WEAK))


def _not_known(group: Document, clock: Clock) -> str:
    at = "" if group["when"]["until_ms"] is None else f" {clock.moment(group['when'])}"
    if group.get("doubt") == "unordered":
        return (
            f": it committed an offset after this one{at}; what is recorded does not tell whether"
            " this message was there then"
        )
    if group.get("doubt") != "ahead":
        return (
            f": it passed this offset{at}, perhaps with another record there, which was truncated"
        )
    whose = group.get("recorded_by")
    by = "past the log end" if whose is None else f"past the log end, or by broker {whose}'s clock"
    return f": it committed an offset after this one{at}, before this message was appended ({by})"


def _forgotten(group: Document, clock: Clock) -> str:
    gone = group["forgotten"]
    at = "; when is not recorded" if gone["at_ms"] is None else f" at {clock.at(gone['at_ms'])}"
    why = f" by {gone['reason']}" if gone["reason"] else ""
    now = group["committed_offset"]
    return f"{at}{why}" + ("" if now is None else f"; it began again, and is at offset {now}")


def grow_not_reached(branch: Branch, group: Document) -> None:
    """The line of a group whose offset is at or before the message."""
    behind, name = group["behind"], (group["group"], NAME)
    word = "message" if behind == 1 else "messages"
    if group["state"] == "missed":
        at = f": it was {behind} {word} behind, at offset {group['committed_offset']}"
        branch.add(name, ("  missed", BAD), at)
    else:
        branch.add(name, ("  not yet", WAITING), f": {behind} {word} behind")


def format_unknown_groups(groups: Document | None) -> list[str]:
    """A line for each reason why other groups may have committed offsets, too."""
    if groups is None or groups["complete"]:
        return []
    said = [
        f"groups that broker {broker} coordinates are not known: it did not answer"
        for broker in groups["unanswered"]
    ]
    if count := groups["without_leader"]:
        some = "1 partition" if count == 1 else f"{count} partitions"
        have = "it has" if count == 1 else "they have"
        said.append(
            f"groups that {some} of __consumer_offsets should have are not known: {have} no leader"
        )
    if count := groups["left_out"]:
        what = "1 more group has" if count == 1 else f"{count} more groups have"
        said.append(f"{what} offsets for this partition; to list them: ottla group list")
    return said
