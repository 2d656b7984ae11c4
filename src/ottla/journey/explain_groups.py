"""The part of the journey's document about groups: who has read the message, who has not. Pure."""

from ottla.journey.clock_jumps import Jumps
from ottla.journey.facts import Facts, Position
from ottla.journey.group_reads import Back, Doubt, Gone, GroupRead, group_reads, groups_ahead
from ottla.journey.moment import Document, moment
from ottla.journey.offset_history import When, Written
from ottla.timelines.delivery_metadata import is_note

GONE = ("removed", "compacted")


def explain_groups(
    facts: Facts, state: str, gone_ms: int | None, written: Written, jumps: Jumps | None = None
) -> list[Document]:
    """Each group with an offset in the partition, or that had one: first those that have passed the
    message, then the others. A group that has not reached a record that is gone has missed it.
    """
    notes = {group for group, now in facts.positions.items() if is_note(now.metadata)}
    positions = {group: now for group, now in facts.positions.items() if group not in notes}
    steps = facts.steps or ()
    if state == "not_yet_written":
        found = groups_ahead(facts.offset, positions, written)
    else:
        complete = facts.groups.is_complete
        found = group_reads(steps, facts.offset, positions, written, all_known=complete)
    document: list[Document] = []
    for read in found:
        if read.group in notes or (facts.groups.left_out and read.group not in positions):
            continue
        now = positions.get(read.group)
        if state == "compacted" and read.was_its_own:
            read = read._replace(doubt=Doubt.UNORDERED)  # perhaps it was gone already
        if jumps is not None:
            read = _by_position(read._replace(when=jumps.told(read.when)), now, facts.offset)
        said = _passed(read, now, facts.broker_id)
        if state == "removed":
            said["only_after_removal"] = jumps is None and _is_after(read.when, gone_ms)
        document.append(said)
    passed = {read.group for read in found}
    for group, now in sorted(positions.items()):
        if group not in passed:
            document.append(
                {
                    "group": group,
                    "state": "missed" if state in GONE else "not_yet",
                    "committed_offset": now.offset,
                    "committed_ms": now.committed_ms,
                    "behind": facts.offset - now.offset + 1,
                }
            )
    return document


def _by_position(read: GroupRead, now: Position | None, offset: int) -> GroupRead:
    """What came after, as the group's position alone says it: where a clock was set back, the steps
    have no certain order.
    """
    if not read.was_its_own and read.doubt is not Doubt.UNORDERED:
        return read
    if now is None:
        return read._replace(back=None, gone=Gone(None, None))
    back = Back(None, now.offset) if now.offset <= offset else None
    return read._replace(back=back, gone=None)


def known_groups(facts: Facts) -> Document:
    """Whether `read` and `delivered` have every group, and whose are not known if they do not."""
    known = facts.groups
    return {
        "complete": known.is_complete,
        "unanswered": list(known.unanswered),
        "without_leader": known.without_leader,
        "left_out": known.left_out,
    }


def _is_after(when: When, gone_ms: int | None) -> bool:
    """Whether it is certain that a group's commit passed the offset after its removal."""
    return gone_ms is not None and when.since_ms is not None and when.since_ms > gone_ms


def _passed(read: GroupRead, now: Position | None, own: int) -> Document:
    document: Document = {
        "group": read.group,
        "state": "read" if read.was_its_own else "not_known",
        "committed_offset": now.offset if now else None,
        "committed_ms": now.committed_ms if now else None,
        "when": moment(read.when),
        "certain": read.doubt is None,
        "doubt": None if read.doubt is None else read.doubt.value,
        "recorded_by": None if read.recorded_by in (-1, own) else read.recorded_by,
        "first_commit_seen": read.doubt is Doubt.FIRST_COMMIT,
        "forgotten": None,
    }
    if read.back is not None:
        document["state"] = "set_back"
        document["set_back"] = {"at_ms": read.back.at_ms, "to_offset": read.back.to_offset}
    if read.gone is not None:
        document["forgotten"] = {"at_ms": read.gone.at_ms, "reason": read.gone.reason}
    return document
