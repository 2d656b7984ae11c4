"""The journey as a tree of lines: six steps, in the order in which a message takes them.

Made from the document that `--json` prints, so it says nothing that a program could not have.
"""

from __future__ import annotations

from ottla.journey.words.appended import grow_appended
from ottla.journey.words.asked_group import grow_asked_group
from ottla.journey.words.clock import Clock
from ottla.journey.words.delivery import grow_delivery
from ottla.journey.words.line import BAD, NAME, STEP, WAITING, WEAK, Branch, Document, line
from ottla.journey.words.partition import format_elsewhere
from ottla.journey.words.published import grow_published
from ottla.journey.words.readers import (
    NOT_REACHED,
    format_unknown_groups,
    grow_not_reached,
    grow_reader,
)
from ottla.journey.words.replicas import grow_replicated
from ottla.journey.words.retention import grow_removed, grow_retention
from ottla.journey.words.shared import grow_shared
from ottla.journey.words.transaction import grow_transaction


def tell(document: Document) -> Branch:
    """The tree of a journey document."""
    position = f"partition {document['partition']}  offset {document['offset']}"
    top = line((document["topic"], NAME), f"  {position}", ("  (times are UTC)", WEAK))
    state = document["state"]
    if document.get("computed"):
        top.parts.append(("  computed now: these brokers record nothing", WAITING))
    if state == "not_yet_written":
        end = document["log"]["end_offset"]
        what = f"the log ends at offset {end}"
        if document.get("computed"):
            what = f"or not replicated yet: consumers get the offsets before {end}"
        top.add(("Not yet written: ", WAITING), what)
        _readers(top, document, "Waiting for it")
        grow_asked_group(top, document)
        return top
    if not document["recorded"] and not document.get("computed"):
        top.add(("No times recorded: ", WAITING), "ottla.journey.enable is false on the broker")
    clock = Clock(document)
    if state == "removed":
        grow_removed(top, document, clock)
    elif state == "compacted":
        top.add(
            ("Removed by compaction: ", WAITING),
            "a later record has its key, or it was a tombstone, aborted, without a key or a marker",
        )
    elif state == "damaged":
        top.add(("Damaged: ", BAD), document["appended"]["damage"])
    if document["published"].get("timestamp_type"):
        grow_published(top, document["published"], clock)
    if document["partition_chosen"]:
        chosen = document["partition_chosen"]
        named = f"{chosen['partition']} of {chosen['partitions']}: "
        branch = top.add(("Partition chosen  ", STEP), named, chosen["why"])
        for said in format_elsewhere(document.get("key_elsewhere")):
            branch.add((said, WAITING))
    grow_appended(top, document, clock)
    grow_replicated(top, document["replicated"], clock)
    grow_transaction(top, document, clock)
    _readers(top, document, "Read and delivered", clock)
    grow_retention(top, document["retention"], is_computed=bool(document.get("computed")))
    grow_asked_group(top, document)
    return top


def _readers(top: Branch, document: Document, title: str, clock: Clock | None = None) -> None:
    clock = clock or Clock(document)
    branch = top.add((title, STEP))
    pipelines = {one["group"] for one in document["delivered"] if one["group"]}
    for group in document["read"]:
        is_said_below = group["state"] == "read" and group["group"] in pipelines
        if group["state"] not in NOT_REACHED and not is_said_below:
            grow_reader(branch, group, clock)
    for one in document["delivered"]:
        grow_delivery(branch, one, clock)
    for group in document["read"]:
        if group["state"] in NOT_REACHED:
            grow_not_reached(branch, group)
    for group in document.get("shared", ()):
        grow_shared(branch, group, clock)
    unknown = format_unknown_groups(document.get("groups"))
    if not branch.below and not unknown:
        branch.parts.append(("  no group has committed offsets for this partition", ""))
    for said in unknown:
        branch.add((said, WAITING))
