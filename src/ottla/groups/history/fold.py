"""Folds events into histories: one document for each rebalance, and for what else happened.

A rebalance lasts from the first cause until every member is where it should be (stable), the last
member has gone (empty), or another coordinator took over (lost). What happens meanwhile belongs to
it. A document is made of JSON's types:

    group, type         "classic", "consumer", "share", "streams"
    at_ms               when it began, in ms since 1970
    first_epoch, epoch  the epochs (generations) that it went through
    end                 "stable", "empty", "lost", null while it goes on; "none": nobody rebalanced
    lasted_ms           until then; null while it goes on
    members             how many there were then; null if that is not known
    causes              of each: why (`events.Why`), at_ms, and where known member, details (texts),
                        other_id, waited_ms, reason. member: id, instance_id, client_id, host
    more_causes         how many there were besides, by why
    moves               topic (of a streams group subtopology), partitions ("0-2,5"), from, to: each
                        null or id and client_id
    moved               how many partitions moved, listed or not; null if that is not known
    is_complete         all that moved is counted and listed

Nothing here grows with how often a group rebalances: `MAX_OPEN` rebalances at a time, each with the
first and the last causes, and `MAX_FOLLOWED` partitions.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from ottla.groups.embedded_protocol import read_assignment
from ottla.groups.history.events import (
    CLASSIC,
    SHARE,
    Assigned,
    Caused,
    Completed,
    Emptied,
    Event,
    Happened,
    Loaded,
    Reached,
    Why,
)
from ottla.groups.history.moves import MAX_FOLLOWED, Moves, NameOf, short
from ottla.groups.stored import GroupMetadataValue
from ottla.groups.subscription import CONSUMER_PROTOCOL_TYPE

MAX_OPEN: Final = 1_000
"""Groups that rebalance at the same time; of more, the oldest are taken as lost."""
MAX_FIRST: Final = 10
MAX_LAST: Final = 10
MAX_DETAILS: Final = 5
MAX_COMPARED_BYTES: Final = 512 << 10
"""Of a classic group's assignments, compared in about 50 ms."""
MAX_REMEMBERED: Final = 1_000
"""Members that went, and what was refused."""
REPEATS_AFTER_MS: Final = 60_000
"""A member that is refused again and again is mentioned once."""

Document: TypeAlias = dict[str, Any]


class Histories:
    """The rebalances under way. For one thread at a time."""

    def __init__(self, name_of: NameOf) -> None:
        self._name_of = name_of
        self._open: dict[str, _Rebalance] = {}
        self._expired: dict[tuple[str, str], int] = {}
        """Members whose session ended, and when."""
        self._refused: dict[tuple[str, str], int] = {}

    def fold(self, event: Event | Loaded) -> list[Document]:
        """What ends with this event."""
        if isinstance(event, Loaded):
            return [self._ended(name, "lost", event.at_ms) for name in self._of(event.groups)]
        if isinstance(event, Happened):
            return self._happened(event)
        if isinstance(event, Reached):
            return self._reached(event)
        if isinstance(event, Completed):
            return self._completed(event)
        ended = self._made_room(event)
        rebalance = self._open.setdefault(event.group, _Rebalance(event))
        rebalance.epoch = max(rebalance.epoch, event.epoch)
        if isinstance(event, Caused):
            if event.cause.why is Why.SESSION_EXPIRED and event.cause.who is not None:
                _remember(self._expired, (event.group, event.cause.who.member_id), event.at_ms)
            rebalance.caused(event)
        elif isinstance(event, Assigned):
            rebalance.assigned(event)
        else:
            rebalance.size = 0
            ended.append(self._ended(event.group, "empty", event.at_ms))
        return ended

    def under_way(self, group: str) -> Document | None:
        """The group's rebalance that has not ended."""
        rebalance = self._open.get(group)
        return None if rebalance is None else rebalance.document(self._name_of, None, None)

    def _of(self, groups: Iterable[str]) -> list[str]:
        return [name for name in groups if name in self._open] if self._open else []

    def _made_room(self, event: Event) -> list[Document]:
        if event.group in self._open or len(self._open) < MAX_OPEN:
            return []
        return [self._ended(next(iter(self._open)), "lost", event.at_ms)]

    def _happened(self, event: Happened) -> list[Document]:
        """A document of its own, or a cause of the rebalance under way."""
        cause = event.cause
        member = event.group, "" if cause.who is None else cause.who.member_id
        if cause.why is Why.CAME_LATE:
            went_ms = self._expired.pop(member, None)
            if went_ms is None:
                return []
            cause = cause._replace(waited_ms=max(event.at_ms - went_ms, 0))
        elif cause.why is Why.FENCED:
            if 0 <= event.at_ms - self._refused.get(member, -REPEATS_AFTER_MS) < REPEATS_AFTER_MS:
                return []
            _remember(self._refused, member, event.at_ms)
        caused = Caused(event.group, event.type, event.epoch, event.at_ms, cause)
        rebalance = self._open.get(event.group)
        if rebalance is not None:
            rebalance.told(caused)
            if cause.why is Why.REPLACED and cause.other_id in (rebalance.waiting or ()):
                assert rebalance.waiting is not None
                rebalance.waiting ^= {cause.other_id, member[1]}
            return []
        rebalance = _Rebalance(event)
        rebalance.told(caused)
        return [rebalance.document(self._name_of, "none", event.at_ms)]

    def _reached(self, event: Reached) -> list[Document]:
        rebalance = self._open.get(event.group)
        if rebalance is None or rebalance.waiting is None or event.epoch != rebalance.epoch:
            return []
        rebalance.waiting.discard(event.member_id)
        if rebalance.waiting:
            return []
        return [self._ended(event.group, "stable", event.at_ms)]

    def _completed(self, event: Completed) -> list[Document]:
        start = Emptied(event.group, CLASSIC, event.after.generation, event.at_ms)
        ended = self._made_room(start)
        rebalance = self._open.setdefault(event.group, _Rebalance(start))
        rebalance.epoch = event.after.generation
        rebalance.completed(event)
        return [*ended, self._ended(event.group, "stable", event.at_ms)]

    def _ended(self, group: str, end: str, at_ms: int) -> Document:
        return self._open.pop(group).document(self._name_of, end, at_ms)


def _remember(known: dict[tuple[str, str], int], key: tuple[str, str], at_ms: int) -> None:
    known.pop(key, None)
    known[key] = at_ms
    if len(known) > MAX_REMEMBERED:
        del known[next(iter(known))]


class _Rebalance:
    """One that is under way."""

    def __init__(self, event: Happened | Caused | Assigned | Emptied) -> None:
        self.group = event.group
        self.type = event.type
        self.first_epoch = self.epoch = event.epoch
        self.since_ms = event.at_ms
        self.size: int | None = None
        self.waiting: set[str] | None = None
        """Members that are not where their target is; None: there are no targets of this epoch."""
        self._first: list[Caused] = []
        self._last: deque[Caused] = deque(maxlen=MAX_LAST)
        self._count: Counter[str] = Counter()
        self._moves = Moves(is_shared=event.type == SHARE)
        self._clients: dict[str, str] = {}

    def caused(self, event: Caused) -> None:
        """The targets that there are, are not the last."""
        self.waiting = None
        self.told(event)

    def told(self, event: Caused) -> None:
        self._count[event.cause.why.value] += 1
        # What was lost is in the moves, and may be large.
        kept = event._replace(lost={})
        if len(self._first) < MAX_FIRST:
            self._first.append(kept)
        else:
            self._last.append(kept)
        who = event.cause.who
        if who is not None and len(self._clients) < MAX_FOLLOWED:
            self._clients[who.member_id] = who.client_id
        for member_id, partitions in event.lost.items():
            self._moves.lost(member_id, partitions, {})

    def assigned(self, event: Assigned) -> None:
        self.type = event.type
        self.size = len(event.members)
        self.waiting = set(event.members)
        for member_id in event.after:
            if len(self._clients) < MAX_FOLLOWED:
                self._clients[member_id] = event.members.get(member_id, "")
        # Who loses comes first: what moves has its old member then.
        for member_id, before in event.before.items():
            self._moves.lost(member_id, before, event.after.get(member_id, {}))
        for member_id, after in event.after.items():
            self._moves.gained(member_id, event.before.get(member_id, {}), after)

    def completed(self, event: Completed) -> None:
        """What a generation of a classic group gave to whom."""
        before, after = event.before, event.after
        self.size = len(after.members)
        self._clients |= {each.member_id: each.client_id for each in after.members[:MAX_FOLLOWED]}
        old = {} if before is None else _assignments(before)
        new = _assignments(after)
        if old is None or new is None:
            self._moves.is_known = False
            return
        if before is not None:
            # A static member that came back is the same member.
            now = {each.group_instance_id: each.member_id for each in after.members}
            for each in before.members:
                self._clients.setdefault(each.member_id, each.client_id)
                if each.group_instance_id in now and each.group_instance_id is not None:
                    had = old.pop(each.member_id, {})
                    old[now[each.group_instance_id]] = had
        for member_id, partitions in old.items():
            self._moves.lost(member_id, partitions, new.get(member_id, {}))
        for member_id, partitions in new.items():
            self._moves.gained(member_id, old.get(member_id, {}), partitions)

    def document(self, name_of: NameOf, end: str | None, at_ms: int | None) -> Document:
        told = [*self._first, *self._last]
        more = self._count - Counter(each.cause.why.value for each in told)
        moves = self._moves
        return {
            "group": self.group,
            "type": self.type,
            "at_ms": self.since_ms,
            "first_epoch": self.first_epoch,
            "epoch": self.epoch,
            "end": end,
            "lasted_ms": None if at_ms is None else max(at_ms - self.since_ms, 0),
            "members": self.size,
            "causes": [_cause_document(each) for each in told],
            "more_causes": dict(more),
            "moves": moves.documents(name_of, self._clients),
            "moved": moves.count if moves.is_known else None,
            "is_complete": moves.is_complete,
        }


def _assignments(value: GroupMetadataValue) -> dict[str, Mapping[str, frozenset[int]]] | None:
    """Of the members, by topic; None if they cannot be read, or are too large."""
    if value.members and value.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    if sum(len(each.assignment) for each in value.members) > MAX_COMPARED_BYTES:
        return None
    try:
        return {
            each.member_id: read_assignment(each.assignment).partitions if each.assignment else {}
            for each in value.members
        }
    except ValueError:
        return None


def _cause_document(caused: Caused) -> Document:
    cause = caused.cause
    document: Document = {"why": cause.why.value, "at_ms": caused.at_ms}
    if cause.who is not None:
        document["member"] = {
            "id": short(cause.who.member_id),
            "instance_id": None if cause.who.instance_id is None else short(cause.who.instance_id),
            "client_id": short(cause.who.client_id),
            "host": short(cause.who.host),
        }
    if cause.details:
        more = len(cause.details) - MAX_DETAILS
        document["details"] = [short(each) for each in cause.details[:MAX_DETAILS]]
        if more > 0:
            document["details"].append(f"{more:,} more")
    if cause.other_id:
        document["other_id"] = short(cause.other_id)
    if cause.waited_ms is not None:
        document["waited_ms"] = cause.waited_ms
    if cause.reason:
        document["reason"] = short(cause.reason)
    return document
