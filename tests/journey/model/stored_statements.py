"""Whether what a journey says of a stored record is true: its transaction, its key's other records,
what the cleaner may do, and what a pipeline made of it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tests.journey.model.statements import UntrueError
from tests.journey.model.stored import GROUP, KEPT, WHY, Kept, Stored

from ottla.journey.explain import explain

Document = dict[str, Any]
COMPACT: Final = "cleanup.policy=compact"


async def check(world: Stored, offset: int) -> None:
    """Ask for a journey. Raises UntrueError for what it should not have said."""
    document = explain(await world.facts(offset))
    StoredChecked(world, offset, document).everything()


async def what_cleaning_may_do(world: Stored) -> dict[int, Document]:
    """What journeys say of compaction now, of each record that can be read."""
    found: dict[int, Document] = {}
    for offset in world.present():
        document = explain(await world.facts(offset))
        StoredChecked(world, offset, document).everything()
        for rule in document["retention"]["rules"]:
            if rule["setting"] == COMPACT:
                found[offset] = rule
    return found


class CleaningSaid:
    """What was said before a round of the cleaner, to compare."""

    def __init__(self, world: Stored, rules: dict[int, Document]) -> None:
        self.world, self.rules = world, rules
        self.before = set(world.present())

    def check(self, has_cleaned: bool) -> None:
        left = set(self.world.present())
        for offset in self.before - left:
            rule = self.rules.get(offset)
            if rule is None or not rule["may_be_removed"]:
                raise UntrueError(f"the cleaner removed offset {offset}: {rule}")
        if not has_cleaned:
            return
        for offset in self.before & left:
            rule = self.rules[offset]
            record = self.world.records[offset]
            is_final = not record.is_control and "tombstone" not in rule["why"]
            if rule["may_be_removed"] and is_final:
                raise UntrueError(f"the cleaner kept offset {offset}: {rule}")


class StoredChecked:
    """One journey beside the truth."""

    def __init__(self, world: Stored, offset: int, document: Document) -> None:
        self.world, self.offset, self.said = world, offset, document
        has_it = offset < len(world.records)
        self.record: Kept | None = world.records[offset] if has_it else None
        self.there = world.present()

    def _is(self, is_true: bool, what: str, said: Any = None) -> None:
        if not is_true:
            raise UntrueError(f"{what}: {said!r}, offset {self.offset}: {self.record}")

    def everything(self) -> None:
        state, record = self.said["state"], self.record
        if record is None:
            self._is(state == "not_yet_written", "state", state)
            return
        if self.offset < self.world.log.start_offset:
            self._is(state == "removed", "state", state)
        else:
            self._is(state == ("stored" if self.offset in self.there else "compacted"), "state")
        if state == "stored":
            self._transaction(record)
            self._read_committed(record)
            for rule in self.said["retention"]["rules"]:
                if rule["setting"] == COMPACT:
                    self._compaction(record, rule)
        for group in self.said["read"]:
            is_sure = group["state"] == "read" and group["doubt"] is None
            self._is(not is_sure or bool(record.batches) or state != "compacted", "read", group)
        self._delivered(record)

    def _transaction(self, record: Kept) -> None:
        said = self.said["transaction"]
        if record.transaction is None:
            self._is(said is None, "transaction", said)
            return
        self._is(said is not None, "transaction", said)
        self._is(said["state"] in (record.outcome, "unknown"), "transaction", said)
        if said["marker"] is not None:
            self._is(said["marker"]["offset"] == record.transaction.marker, "marker", said)
        if said["first_offset"] is not None:
            first = record.transaction.first_offset
            self._is(said["first_offset"] == first, "first of its transaction", said)

    def _read_committed(self, record: Kept) -> None:
        said, stable = self.said["read_committed"], self.world.stable
        self._is(said["last_stable_offset"] == stable, "last stable offset", (said, stable))
        truth = "visible"
        if self.offset >= stable:
            truth = "waiting"
        elif record.is_control:
            truth = "control"
        elif record.outcome == "aborted":
            truth = "aborted"
        self._is(said["state"] == truth, "read_committed", (said, truth))
        held = said["held_by"]
        if held is not None and held["reason"] == "open_transaction":
            firsts = {one.producer_id: one.first_offset for one in self.world.open.values()}
            producer_id = held["producer"]["id"]
            self._is(firsts.get(producer_id) == held["first_offset"] <= stable, "held by", held)

    # Compaction.

    def _counting(self) -> list[Kept]:
        """Later records with its key that the cleaner counts, or will."""
        record, stable = self.record, self.world.stable
        assert record is not None
        return [
            one
            for one in self.world.records[self.offset + 1 : stable]
            if one.key == record.key and not one.is_control and one.outcome != "aborted"
        ]

    def _compaction(self, record: Kept, rule: Document) -> None:
        why = rule["why"]
        found = re.match(r"superseded by offset (\d+)", why)
        if found:
            truth = [one.offset for one in self._counting()]
            self._is(int(found[1]) in truth, "superseded", (why, truth))
        if why.startswith("aborted"):
            self._is(record.outcome == "aborted", "aborted", why)
        if why.startswith("a record without a key"):
            self._is(record.key is None, "without a key", why)
        if why.startswith("its transaction is open"):
            self._is(record.outcome == "open", "open", why)
        if why.startswith("a tombstone"):
            self._is(record.is_tombstone, "tombstone", why)
        if why.startswith("a transaction's marker"):
            self._is(record.is_control, "marker", why)
        if why.startswith("the latest record with its key"):
            self._is(not self._counting() and not record.is_control, "the latest", why)
            self._is(record.outcome != "aborted" and record.key is not None, "kept", why)
            later = [
                one
                for one in self.world.records[self.offset + 1 :]
                if one.key == record.key and not one.is_control and one.outcome != "aborted"
            ]
            if "committed:" not in why:
                self._is(not later, "the latest", (why, later))
        found = re.match(r"superseded once offset (\d+)", rule["note"] or "")
        if found:
            other = self.world.records[int(found[1])]
            self._is(other.key == record.key and other.offset >= self.world.stable, "once", rule)

    # The pipeline.

    def _delivered(self, record: Kept) -> None:
        for one in self.said["delivered"]:
            self._is(one["group"] == GROUP, "group", one)
            if one["in_doubt"]:
                continue
            truth = [
                batch
                for batch in record.batches
                if one["first_batch"] <= batch <= one["last_batch"]
            ]
            self._is(bool(truth), "delivered", (one, record.batches))
            if one["rejected"] is None:
                self._is(not record.rejected, "not rejected", one)
            elif one["rejected"]["certain"]:
                said = one["rejected"]
                self._is(record.rejected, "rejected", said)
                self._is((said["reason"], said["kept"]) in ((WHY, KEPT), (None, KEPT)), "why", said)
            if one["row"] is not None:
                self._row(record, one["row"])

    def _row(self, record: Kept, row: Document) -> None:
        deed = self.world.deed_of(record)
        self._is(deed is not None, "row", row)
        assert deed is not None
        truth = (row, deed)
        with_key = {
            other.partition
            for other in self.world.others
            if any(one.key == record.key and not one.is_control for one in other.records)
        }
        self._is(with_key.issuperset(row["also_in"]), "also in", truth)
        if with_key & set(row["unless_in"]):
            return  # it is said only of a key that was never there
        self._is(row["did"] in (None, deed.did), "did", truth)
        self._is(row["of"] is None or self._is_own(deed.of, row["of"]), "of", truth)
        self._is(row["then"] in (None, deed.then), "then", truth)
        if row["by"] is not None:
            self._is(self._is_own(deed.by, row["by"]["offset"]), "by", truth)

    def _is_own(self, other: Kept | None, offset: int) -> bool:
        """Whether a record is the one of this partition at the offset."""
        return other is not None and (other.partition, other.offset) == (
            self.world.partition,
            offset,
        )


def states_of(world: Stored) -> set[str]:
    """For tests that a life has something of everything."""
    return {record.outcome for record in world.records}
