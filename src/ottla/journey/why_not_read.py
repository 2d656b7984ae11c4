"""Why one group has not read a message: reasons as values, from the journey's document and what the
group's coordinator says of its members. Pure.

    "asked_group": {"group": "g", "state": as under "read", or "no_offset" or "unknown",
                    "reasons": [{"why": ..., and its fields}]}

The reasons, in the order in which they stop a group:

    not_written          the message does not exist yet; `end_offset`
    coordinator_unknown  its coordinator did not answer; `unanswered`
    no_group             there is no such group
    no_offset            it has committed nothing for the partition
    forgotten            its offset was removed; `at_ms`, `reason`
    set_back             it was set back; `at_ms`, `to_offset`
    doubt                it has passed the message, and perhaps not read it; `doubt`
    not_replicated       the high watermark has not passed the message; `high_watermark`
    open_transaction     readers under read_committed stop before the message, at
                         `last_stable_offset`; `is_there`: this group is there now
    not_visible          readers under read_committed do not get it: `state` aborted or control
    behind               `behind` messages; `committed_offset`, and since when: `committed_ms`
    no_members           nobody reads as the group; `is_simple`: it has never had members
    rebalancing          its members are being assigned; `state`
    not_assigned         none of the `members` has this partition
    (of a share group also those of `why_not_shared`)
    assigned             to `member_id` with `client_id` at `host`, which has not committed past the
                         message since `committed_ms`
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.journey.why_not_shared import Readers, why_not_shared

Document = dict[str, Any]
STABLE: Final = "stable"


class MemberNow(NamedTuple):
    """A member, and whether it is assigned the partition of the message."""

    member_id: str
    client_id: str
    host: str
    has_partition: bool


class GroupNow(NamedTuple):
    """The group as its coordinator describes it; `state` as `stable` or `empty`."""

    state: str
    is_simple: bool
    members: Sequence[MemberNow]
    is_shared: bool = False
    """It is a share group."""


def why_not_read(document: Document, group: str, now: GroupNow | None) -> Document:
    """The value of `asked_group`. `now` is None if there is no such group."""
    known = next((one for one in document["read"] if one["group"] == group), None)
    has_shared = any(one["group"] == group for one in document.get("shared", ()))
    if has_shared and known is None if now is None else now.is_shared:
        return _of_shared(document, group, now)
    state = known["state"] if known else "unknown" if _is_unknown(document) else "no_offset"
    reasons = _of_message(document) + _of_offset(document, known)
    is_read = known is not None and known["state"] == "read" and known["certain"]
    if is_read:
        reasons = []
    elif state == "no_offset" and now is None:
        reasons.append({"why": "no_group"})
    if not is_read and now is not None:
        reasons += _of_readers(document, known)
        reasons.append(_of_members(known, now))
    return {"group": group, "state": state, "reasons": reasons}


def _of_shared(document: Document, group: str, now: GroupNow | None) -> Document:
    written = _of_message(document)
    of_partition = [] if written else _of_readers(document, None)
    readers = None
    if now is not None:
        having = sum(each.has_partition for each in now.members)
        readers = Readers(now.state, len(now.members), having)
    told = document.get("shared", ())
    state, reasons = why_not_shared(group, told, of_partition, readers)
    return {"group": group, "state": state, "reasons": written + reasons}


def _is_unknown(document: Document) -> bool:
    return not document["groups"]["complete"]


def _of_message(document: Document) -> list[Document]:
    if document["state"] == "not_yet_written":
        return [{"why": "not_written", "end_offset": document["log"]["end_offset"]}]
    return []


def _of_offset(document: Document, known: Document | None) -> list[Document]:
    """What the group's committed offset says."""
    if known is None:
        if _is_unknown(document):
            unanswered = document["groups"]["unanswered"]
            return [{"why": "coordinator_unknown", "unanswered": unanswered}]
        return [{"why": "no_offset"}]
    found: list[Document] = []
    if known.get("forgotten"):
        found.append({"why": "forgotten", **known["forgotten"]})
    if known["state"] == "set_back":
        found.append({"why": "set_back", **known["set_back"]})
    elif known.get("doubt"):
        found.append({"why": "doubt", "doubt": known["doubt"]})
    if "behind" in known:
        fields = ("behind", "committed_offset", "committed_ms")
        found.append({"why": "behind", **{name: known[name] for name in fields}})
    return found


def _of_readers(document: Document, known: Document | None) -> list[Document]:
    """What keeps readers of the partition from the message, whatever their group."""
    replicated, reading = document.get("replicated"), document.get("read_committed")
    if replicated is not None and not replicated["committed"]:
        high_watermark = document["log"]["high_watermark"]
        return [{"why": "not_replicated", "high_watermark": high_watermark}]
    if reading is None or reading["state"] == "visible":
        return []
    if reading["state"] != "waiting":
        return [{"why": "not_visible", "state": reading["state"]}]
    stable = reading["last_stable_offset"]
    at = known["committed_offset"] if known else None
    is_there = at is not None and at >= stable
    return [{"why": "open_transaction", "last_stable_offset": stable, "is_there": is_there}]


def _of_members(known: Document | None, now: GroupNow) -> Document:
    if not now.members:
        return {"why": "no_members", "is_simple": now.is_simple}
    if now.state != STABLE:
        return {"why": "rebalancing", "state": now.state}
    reader = next((each for each in now.members if each.has_partition), None)
    if reader is None:
        return {"why": "not_assigned", "members": len(now.members)}
    return {
        "why": "assigned",
        "member_id": reader.member_id,
        "client_id": reader.client_id,
        "host": reader.host,
        "committed_ms": known["committed_ms"] if known else None,
    }
