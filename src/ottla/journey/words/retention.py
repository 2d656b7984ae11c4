"""When the record may be deleted, or how it was: see `retention_rules`."""

from __future__ import annotations

from typing import Final

from ottla.journey.formatting import format_bytes, format_moment, format_span
from ottla.journey.retention_rules import COMPACT, Rule, Statement
from ottla.journey.words.clock import Clock
from ottla.journey.words.line import BAD, GOOD, STEP, WAITING, WEAK, Branch, Document

_WHOSE: Final = {
    "segment": "its segment's",
    "older_segment": "an older segment's",
    "batch": "its batch's",
}


def format_rule(rule: Rule) -> str:
    """The reason of a rule."""
    reason = rule.reason
    match reason["kind"]:
        case "older":
            span = format_span(reason["span_ms"])
            if reason["of"] == "batch":
                return f"its batch is older than {span}: deleted when all of its segment is"
            return f"its segment's newest record is older than {span}: the next check may delete it"
        case "not_old":
            span, newest = format_span(reason["span_ms"]), format_moment(reason["newest_ms"])
            said = f"{span} after {_WHOSE[reason['of']]} newest record ({newest})"
            return f"{said}, or later" if reason["of"] == "batch" else said
        case "no_timestamp":
            return "its batch has no timestamp"
        case "surplus":
            keeps = format_bytes(reason["keeps_bytes"])
            return f"the log holds {keeps} without its segment: the next check may delete it"
        case "needs":
            keeps, missing = format_bytes(reason["keeps_bytes"]), reason["missing_bytes"]
            if missing is None:
                return f"the log keeps {keeps}: how much follows is not known"
            return (
                f"the log keeps {keeps}: its segment is deleted after {format_bytes(missing)} more"
            )
        case "no_retention":
            return "kept until it is deleted manually: no retention is set"
    return _by_compaction(rule)


def _by_compaction(rule: Rule) -> str:
    said = _of_the_record(rule.reason)
    if "dirty_ratio" in rule.reason:
        ratio = rule.reason["dirty_ratio"]
        return f"{said}: the cleaner may remove it once {ratio:.0%} of the log is dirty"
    if rule.setting == COMPACT and rule.not_before_ms is not None:
        return f"{said}; not before {format_moment(rule.not_before_ms)}"
    return said


def _of_the_record(reason: Statement) -> str:
    """What compaction does with the record, apart from when."""
    match reason["kind"]:
        case "aborted":
            return "aborted: compaction removes it, whatever its key is"
        case "no_key":
            return "a record without a key: compaction removes it"
        case "open":
            return "its transaction is open: compaction stops before it"
        case "marker_not_found":
            return "not known: the marker of its transaction was not found"
        case "superseded":
            return f"superseded by offset {reason['by_offset']}"
        case "not_searched":
            return (
                "if its key has a later record, or it has no key: later records were not searched"
            )
        case "latest":
            why = "the latest record with its key"
            if reason["is_committed"]:
                why += " that is committed"
            elif reason["searched_to"] is not None:
                why = f"no later record with its key up to offset {reason['searched_to'] - 1}"
            return f"{why}: compaction keeps it"
    is_tombstone = reason["kind"] == "tombstone"
    what = "a tombstone" if is_tombstone else "a transaction's marker"
    since = "" if is_tombstone else " that finds no record of it"
    said = f"{what}, kept {format_span(reason['kept_ms'])} after the first cleaning{since}"
    return said if reason["was_cleaned"] else f"{said}, which has not happened yet"


def format_delay(delay: Statement | None) -> str | None:
    """What can delay it."""
    if delay is None:
        return None
    match delay["kind"]:
        case "unknown_segment":
            return "what else is in its segment is not known"
        case "undecided":
            offset = delay["offset"]
            return f"superseded once offset {offset} is committed, which has its key, too"
        case "stable_offset":
            return f"the cleaner stops at the last stable offset, {delay['offset']}"
    offset, rolls_ms = delay["offset"], delay["rolls_ms"]
    whose = "its segment" if offset is None else f"the segment of offset {offset}"
    stops = "newer records delay this"
    if delay["stops"] == "the_cleaner":
        stops = "the cleaner skips it"
    full = f"{format_bytes(delay['segment_bytes'])} (now {format_bytes(delay['size_bytes'])})"
    at = "" if rolls_ms is None else f" or at {format_moment(rolls_ms)}"
    return f"{whose} is active: {stops} until it rolls, at {full}{at}"


def grow_removed(top: Branch, document: Document, clock: Clock) -> None:
    removed = document["removed"]
    start = document["log"]["start_offset"]
    why = f", by {removed['reason']}" if removed["reason"] else ""
    at = clock.moment(removed["when"], dated=True)
    top.add(("Removed  ", BAD), at, f"{why}: the log starts at offset {start}")


def grow_retention(top: Branch, retention: Document | None, *, is_computed: bool) -> None:
    if retention is None:
        return
    not_before = retention["not_before_ms"]
    branch = top.add(("Retention  ", STEP))
    if retention["may_be_removed"] and is_computed:
        branch.parts.append(
            ("not known: it cannot be excluded that it may be deleted now", WAITING)
        )
    elif retention["may_be_removed"]:
        branch.parts.append(("may be deleted at any time", WAITING))
    elif not_before is None:
        branch.parts.append(("not deleted by any current rule", GOOD))
    else:
        branch.parts.append((f"not before {format_moment(not_before)}".removesuffix(" UTC"), GOOD))
    for rule in retention["rules"]:
        said = branch.add((f"{rule['setting']}  ", WEAK), rule["why"].replace(" UTC", ""))
        if rule["note"]:
            said.add(rule["note"].replace(" UTC", ""))
