"""Sentences of a history's documents (`groups.history.fold`), for the command line and pages.

What a field says that is not known, a newer broker's, is shown as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ottla.groups.history.events import NO_EPOCH, STREAMS
from ottla.journey.formatting import format_elapsed
from ottla.wording.plural import plural

Document: TypeAlias = Mapping[str, Any]


def _took(cause: Document) -> str:
    waited_ms = cause.get("waited_ms")
    return "" if waited_ms is None else format_elapsed(waited_ms)


_CAUSES: Final[dict[str, Callable[[str, Document], str]]] = {
    "joined": lambda who, _: f"{who} joined",
    "joined_again": lambda who, _: f"{who}, the leader, asked for a rebalance",
    "left": lambda who, _: f"{who} left",
    "removed": lambda who, _: f"{who} was removed by an administrator",
    "session_expired": lambda who, cause: (
        f"{who} missed its heartbeat: nothing was heard of it for {_took(cause)}"
    ),
    "rebalance_timeout": lambda who, cause: (
        f"{who} did not take part in the rebalance within {_took(cause)}"
    ),
    "subscription_changed": lambda who, _: f"{who} changed its subscription",
    "topics_changed": lambda who, _: "the topics changed",
    "regex_matched": lambda who, _: "a regular expression matches other topics",
    "states_changed": lambda who, _: "more partitions are ready to be shared",
    "settings_changed": lambda who, _: "the group's settings changed",
    "said_other": lambda who, _: f"{who} said other things of itself than before",
    "replaced": lambda who, cause: (
        f"{who} came back under another id, which fenced {cause.get('other_id')}"
    ),
    "upgraded": lambda who, _: "a member of the consumer protocol (KIP-848) converted the group",
    "downgraded": lambda who, _: "the group became a classic one again",
    "not_stored": lambda who, _: "the leader's assignment could not be written",
    "too_large": lambda who, _: "group.max.size is less than the group has members",
    "came_late": lambda who, cause: (
        f"{who} sent a heartbeat {_took(cause)} after it was taken for dead"
    ),
    "fenced": lambda who, _: f"{who} was fenced: its id or epoch is an old one",
}


def member_name(member: Document | None) -> str:
    """`app-1 (instance i-1, 10.0.0.7)`; the member id where there is no client id."""
    if member is None:
        return "nobody"
    name = member.get("client_id") or member.get("id") or "a member"
    more = [f"instance {member['instance_id']}"] if member.get("instance_id") else []
    if member.get("host"):
        more.append(member["host"].lstrip("/"))
    return f"{name} ({', '.join(more)})" if more else str(name)


def cause_text(cause: Document) -> str:
    """Why, in one sentence without its end."""
    who = member_name(cause["member"]) if cause.get("member") else "a member"
    known = _CAUSES.get(cause["why"])
    text = f"{who}: {cause['why']}" if known is None else known(who, cause)
    details = ", ".join(cause.get("details", ()))
    if details:
        text += f": {details}"
    return f'{text} ("{cause["reason"]}")' if cause.get("reason") else text


def causes_texts(entry: Document) -> list[str]:
    """One for each cause, and one for those that are not listed."""
    texts = [cause_text(each) for each in entry["causes"]]
    more = entry.get("more_causes") or {}
    if more:
        kinds = ", ".join(f"{count:,} {why.replace('_', ' ')}" for why, count in more.items())
        texts.insert((len(texts) + 1) // 2, f"and {sum(more.values()):,} more: {kinds}")
    return texts or ["the cause is not known: this coordinator began meanwhile"]


def outcome_text(entry: Document) -> str:
    """What came of it: `epoch 4 to 6: stable after 1.2 s, 3 members`."""
    end = entry["end"]
    if end == "none":
        return "no rebalance"
    first, last = entry["first_epoch"], entry["epoch"]
    word = "generation" if entry["type"] == "classic" else "epoch"
    text = f"{word} {last}" if first in (last, NO_EPOCH) else f"{word}s {first} to {last}"
    lasted_ms = entry["lasted_ms"]
    after = "" if lasted_ms is None else f" after {format_elapsed(lasted_ms)}"
    text += {
        "stable": f": stable{after}",
        "empty": f": no member is left{after}",
        "lost": f": another coordinator took over{after}",
        None: ": not stable yet",
    }.get(end, f": {end}{after}")
    if end == "stable" and entry.get("members") is not None:
        text += f", {plural(entry['members'], 'member')}"
    return text


def moved_text(entry: Document) -> str:
    """How much changed hands: `6 partitions moved`; empty where that is nothing to tell."""
    if entry["end"] == "none" or (entry["end"] is not None and entry["end"] != "stable"):
        return ""
    moved = entry["moved"]
    if moved is None:
        return "what moved is not known"
    if not moved:
        return "nothing moved"
    return f"{plural(moved, 'task' if entry['type'] == STREAMS else 'partition')} moved"


def moves_texts(entry: Document) -> list[str]:
    """`orders 0-2: app-1 -> app-2`, each. Of a streams group `subtopology 0 0-2: ...`."""
    members = [each[side] for each in entry["moves"] for side in ("from", "to") if each[side]]
    ids: dict[str, set[str]] = {}
    for each in members:
        ids.setdefault(member_name(each), set()).add(each["id"])

    def named(member: Document | None) -> str:
        name = member_name(member)
        if member is None or len(ids[name]) == 1:
            return name
        # Consumers of one application have the same client id: the ends of their ids differ.
        return f"{name} ...{member['id'][-6:]}"

    kind = "subtopology " if entry["type"] == STREAMS else ""
    return [
        f"{kind}{each['topic']} {each['partitions']}: {named(each['from'])} -> {named(each['to'])}"
        for each in entry["moves"]
    ]
