"""What a message did to a table that has one row, or one version, for each key. Pure.

The broker does not read the table. It knows the messages of the key in this partition, in which
batch the pipeline delivered each, and by which rule the pipeline says that a record of a batch
replaces a row (`ottla.pipelines`, `upsert_statement` and `history_statement`). So it computes what
the table has. Messages that the pipeline rejected (see `rejection.py`) are left out. The pipeline's
query may leave out others; nothing here knows that.

    "row": {"did": "inserted", "updated", "deleted", "opened" (a version) or "closed" (the last
                   version); "marked": a tombstone without a row, kept as one that is marked
                   deleted; "nothing": a tombstone without a row; "skipped": a tombstone that the
                   pipeline skips; "older": the row was newer; "replaced": another record of its
                   batch won; null: not known,
            "of": the offset of the row that it replaced, deleted or closed, or that was newer,
            "then": "current", "superseded", "deleted" or "gone" (there is no row of it); null:
                   not known,
            "by": null, or {"offset", "first_batch", "last_batch", "first_version",
                   "last_version"} of the message that superseded or deleted it}
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from ottla.journey.moment import Document
from ottla.timelines.destination import Destination

MAX_RECORDS: Final = 16
"""How many messages of the key are looked at before the message, and how many after it."""


class KeyRecord(NamedTuple):
    """A message of the key; `is_tombstone`: its value is null. `is_committed`: False if its
    transaction was aborted, None if that is open or not known.
    """

    offset: int
    timestamp_ms: int
    is_tombstone: bool
    is_committed: bool | None = True


class KeyHistory(NamedTuple):
    """Messages of one key in one partition, in the order of their offsets.

    `is_whole`: the partition has no earlier one, and never had. `has_all`: none is left out in
    between or after.
    """

    records: Sequence[KeyRecord]
    is_whole: bool
    has_all: bool = True


class Batches(NamedTuple):
    """The batches, and versions of the table, of which one has a message."""

    first_batch: int
    last_batch: int
    first_version: int
    last_version: int

    @property
    def is_exact(self) -> bool:
        return self.first_batch == self.last_batch


class _InBatches(NamedTuple):
    record: KeyRecord
    batches: Batches


def row_of(
    to: Destination,
    history: KeyHistory,
    offset: int,
    batches_of: Callable[[int], Batches | None],
) -> Document:
    """What the message at `offset` did to the table, and what became of it.

    `batches_of` gives the batches of an offset, None for one that is not delivered or was rejected.
    The message itself is delivered, and is one of the history.
    """
    records = [
        _InBatches(record, batches)
        for record in history.records
        if not (record.is_tombstone and to.deletes == "skip")
        and (batches := batches_of(record.offset)) is not None
    ]
    own = next((one for one in records if one.record.offset == offset), None)
    if own is None:  # a tombstone that is skipped
        return _row("skipped", None, "gone")
    if to.order == "column":
        return _row(None, None, None)
    if to.rows == "history":
        return _version(to, records, own, history)
    return _upserted(to, records, own, history)


def _order(to: Destination) -> Callable[[_InBatches], tuple[int, int]]:
    if to.order == "timestamp":
        return lambda one: (one.record.timestamp_ms, one.record.offset)
    return lambda one: (0, one.record.offset)


def _version(
    to: Destination, records: Sequence[_InBatches], own: _InBatches, history: KeyHistory
) -> Document:
    """In a history each message is a version; the next one in their order closes it."""
    ordered = sorted(records, key=_order(to))
    at = ordered.index(own)
    before = ordered[at - 1] if at else None
    after = ordered[at + 1] if at + 1 < len(ordered) else None
    if own.record.is_tombstone:
        has_row = before is not None and not before.record.is_tombstone
        # Without a version to close it is one of its own, of no length.
        did = "closed" if has_row else "opened" if history.is_whole or before else None
        return _row(did, before if has_row else None, "gone")
    if after is None:
        return _row("opened", None, "current" if history.has_all else None)
    return _row("opened", None, _end(after), after)


def _upserted(
    to: Destination, records: Sequence[_InBatches], own: _InBatches, history: KeyHistory
) -> Document:
    """Follow the row of the key from batch to batch: the last record of each batch is merged."""
    if to.order == "timestamp" and not history.is_whole:
        return _row(None, None, None)  # an earlier message may be newer
    order = _order(to)
    row: _InBatches | None = None
    is_known = history.is_whole
    said: Document | None = None
    for batches, group in groupby(records, key=lambda one: one.batches):
        of_batch = list(group)
        last = max(of_batch, key=order)
        if not batches.is_exact and len(of_batch) > 1 and own in of_batch:
            # Perhaps one batch, perhaps several: only the end is certain.
            return _row(None, None, None) if last is own else _row(None, None, _end(last), last)
        is_newer = row is None or to.order == "offset" or order(last) >= order(row)
        if own in of_batch:
            if last is not own:
                return _row("replaced", None, _end(last), last)
            if not is_newer:
                return _row("older", row, "gone")
            said = _first_deed(to, own, row, is_known=is_known)
            if own.record.is_tombstone and to.deletes == "remove":
                return said
        elif said is not None and is_newer:
            return said | {"then": _end(last), "by": _by(last)}
        if is_newer:
            is_removed = last.record.is_tombstone and to.deletes == "remove"
            row = None if is_removed else last
            is_known = True
    assert said is not None, "the message is in one of the batches"
    if not own.record.is_tombstone and not history.has_all:
        said["then"] = None
    return said


def _first_deed(
    to: Destination, own: _InBatches, row: _InBatches | None, *, is_known: bool
) -> Document:
    """What a record did that was the last of its batch, and newer than the row of its key."""
    had_row = row is not None and not row.record.is_tombstone
    if own.record.is_tombstone:
        without = "marked" if to.deletes == "mark" else "nothing"
        did = "deleted" if had_row else without if is_known else None
        return _row(did, row if had_row else None, "gone")
    did = "updated" if had_row else "inserted" if is_known else None
    return _row(did, row if had_row else None, "current")


def _end(last: _InBatches) -> str:
    return "deleted" if last.record.is_tombstone else "superseded"


def _by(last: _InBatches) -> Document:
    return {"offset": last.record.offset, **last.batches._asdict()}


def _row(
    did: str | None, of: _InBatches | None, then: str | None, by: _InBatches | None = None
) -> Document:
    return {
        "did": did,
        "of": None if of is None else of.record.offset,
        "then": then,
        "by": None if by is None else _by(by),
    }
