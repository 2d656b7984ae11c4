"""What happened lately to the records of share groups on partitions that this broker leads.

For journeys. It is kept in memory only, within limits: a broker that begins to lead a partition
knows nothing of what was before, and of a busy partition only the last notes stay.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from ottla.share.note import Note
from ottla.share.stored import ShareKey

MAX_NOTES: Final = 1_000
"""Of a group on a partition: about 200 bytes each."""
MAX_KEYS: Final = 100
"""Groups on partitions; more forget the one of which nothing was noted for the longest time."""


class Timed(NamedTuple):
    """A note and its time, in ms since 1970."""

    at_ms: int
    note: Note


class Known(NamedTuple):
    """What is kept of a record. `since_ms`: what was before is forgotten; None: nothing is, since
    this broker has begun to share the partition."""

    notes: list[Timed]
    since_ms: int | None


class _Kept:
    __slots__ = ("is_cut", "notes")

    def __init__(self) -> None:
        self.notes: deque[Timed] = deque(maxlen=MAX_NOTES)
        self.is_cut = False


class ShareHistory:
    """For the event loop's thread only."""

    def __init__(self) -> None:
        self._kept: OrderedDict[ShareKey, _Kept] = OrderedDict()

    def add(self, key: ShareKey, notes: Iterable[Note], at_ms: int) -> None:
        """In the order in which they happened."""
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = _Kept()
            if len(self._kept) > MAX_KEYS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        for note in notes:
            kept.is_cut = kept.is_cut or len(kept.notes) == MAX_NOTES
            kept.notes.append(Timed(at_ms, note))

    def groups_of(self, topic_id: UUID, partition: int) -> list[str]:
        """The groups of which something is kept on this partition."""
        return [each.group_id for each in self._kept if each[1:] == (topic_id, partition)]

    def of(self, key: ShareKey, offset: int) -> Known:
        """What is kept of one record."""
        kept = self._kept.get(key)
        if kept is None:
            return Known([], None)
        found = [each for each in kept.notes if each.note.first <= offset <= each.note.last]
        return Known(found, kept.notes[0].at_ms if kept.is_cut else None)
