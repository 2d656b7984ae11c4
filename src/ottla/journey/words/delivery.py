"""What pipelines did with the message, and where it is now."""

from __future__ import annotations

from ottla.journey.formatting import one_of
from ottla.journey.words.clock import Clock
from ottla.journey.words.line import BAD, GOOD, NAME, WAITING, WEAK, Branch, Document
from ottla.journey.words.row import format_row


def grow_delivery(branch: Branch, one: Document, clock: Clock) -> None:
    sink, when = one.get("sink"), one["when"]
    if sink is None and one["delta"]:
        sink = {"place": one["delta"]["table"], "place_is": "table"}
    parts: list[tuple[str, str] | str] = [(f"pipeline {one['query']}", NAME)]
    rejected = one.get("rejected")
    if rejected:
        parts.append(("  read  ", GOOD))
    elif one["delta"]:
        version = one_of("version", one["delta"]["first_version"], one["delta"]["last_version"])
        parts += [("  in Delta ", GOOD), (version, NAME), "  "]
    elif sink:
        parts += [("  into ", GOOD), (sink["called"], NAME), "  "]
    else:
        parts.append(("  delivered  ", GOOD))
    batch = one_of("batch", one["first_batch"], one["last_batch"])
    parts += [clock.moment(when), (clock.after(when), WEAK), (f"  ({batch})", WEAK)]
    said = branch.add(*parts)
    if rejected:
        colour = BAD if rejected["certain"] else WAITING
        said.add(("rejected", colour), format_rejection(rejected))
    if sink and not (rejected and rejected["certain"]):
        place_is = "to" if sink["place_is"] == "topic" else sink["place_is"]
        said.add((f"{place_is:7}", WEAK), sink["place"])
        if sink["place_is"] == "folder" and sink["last_version"] is not None:
            lists = one_of("list", sink["first_version"], sink["last_version"])
            files = said.add(("files  ", WEAK), f"those of {lists} in _spark_metadata")
            for file in sink.get("files", ()):
                files.add(file)
            more = sink.get("file_count", 0) - len(sink.get("files", ()))
            if more:
                files.add((f"and {more} more", WEAK))
    if unknown := one.get("unknown_fields"):
        what = {"drop": "dropped", "keep": "kept in _unknown"}.get(unknown["did"], "rejected")
        fields = ", ".join(unknown["fields"])
        said.add(("unknown", WAITING), f" fields {what}: {fields}; the schema lacks them")
    if one.get("in_doubt"):
        why = ": what is recorded does not tell, or another record had this offset then"
        said.add(("not known whether it had this message", WAITING), why)
    if one.get("row"):
        said.add(("row    ", WEAK), format_row(one["row"]))
    if one["group"] is None:
        said.add(
            ("from the table's log; the table has no row if it was rejected or filtered", WEAK)
        )
        return
    group = said.add(("group  ", WEAK), one["group"])
    if one["first_commit_seen"]:
        group.parts.append(("  (its first commit; its start is not recorded)", WEAK))


def format_rejection(rejected: Document) -> str:
    """Why a message has no row; or that it is not known whether it has one."""
    kept = f"; kept in {rejected['kept']}" if rejected["kept"] else ""
    if rejected["certain"]:
        return f": {rejected['reason'] or 'the reason is not known'}{kept}"
    first, last = rejected["first_offset"], rejected["last_offset"]
    if first == last:
        return f" perhaps: it is not known whether this message became a row{kept}"
    were = "were" if kept else "may have been"
    some = f"some of offsets {first} to {last} {were} rejected{kept}"
    return f" perhaps: {some}. It is not known whether this one became a row"
