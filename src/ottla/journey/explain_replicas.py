"""The replicas' part of a journey's document. Pure.

    "replicated": {..., "leader", "leader_epoch", "in_sync_now": [...],
      "copies": [{"broker", "state": "leader", "copied", "not_yet" or "not_recorded",
                  "when", "fetched_to"}],
      "in_sync": {"brokers", "leader", "leader_epoch", "at_ms"} or null,
      "elections": [{"at_ms", "leader", "leader_epoch", "previous_leader", "end_offset",
                     "seen_at_start", "unclean": true, false or null for unknown,
                     "dropped": [{"broker", "from_offset", "to_offset", "committed_to", "at_ms"}]}]}

`to_offset` and `committed_to` are the last offsets of what was dropped and of what of it had been
committed (null: none, or not known on that broker).
"""

from collections.abc import Sequence
from typing import Final

from ottla.journey.facts import Facts
from ottla.journey.lookup import Appended, When
from ottla.journey.moment import Document, moment
from ottla.journey.replication import (
    Copy,
    Dropped,
    Election,
    Reign,
    copies,
    dropped,
    elections,
    leader_of,
    reign_at,
    reigns,
)

MAX_ELECTIONS: Final = 50
NOBODY: Final = -1


class Replicas:
    """What is known of the replicas, for one offset."""

    def __init__(self, facts: Facts, was: Appended) -> None:
        self.facts = facts
        self.own = was.when
        """When it came to this broker's log."""
        steps = facts.steps or ()
        self.reigns = reigns(steps)
        self.copies = copies(steps, facts.offset)
        self.cuts = dropped(steps)
        self.appended_by = self._appended_by()

    def _appended_by(self) -> int | None:
        """The broker whose append gave it its offset; None where that is not known."""
        facts = self.facts
        if not self.reigns and len(facts.replicas) <= 1:
            return facts.broker_id
        if facts.place is not None:
            return leader_of(self.reigns, facts.place.header.leader_epoch)
        if self.own.is_exact and self.own.since_ms is not None:
            then = reign_at(self.reigns, self.own.since_ms)
            return then.leader if then is not None and then.leader >= 0 else None
        return None

    @property
    def led_here(self) -> bool:
        return self.appended_by == self.facts.broker_id

    def heard(self, when: When) -> When:
        """When the leader did what this broker noted: before, where it was a follower."""
        return when if self.led_here else When(None, when.until_ms)

    def document(self, committed: When | None) -> Document:
        """The fields that tell of replicas; `committed` is when the high watermark passed."""
        facts = self.facts
        return {
            "leader": None if facts.leader == NOBODY else facts.leader,
            "leader_epoch": facts.leader_epoch,
            "in_sync_now": list(facts.isr),
            "copies": [self._copy(broker) for broker in facts.replicas],
            "in_sync": self._in_sync(committed),
            "elections": self._elections(),
        }

    def _copy(self, broker: int) -> Document:
        if broker == self.appended_by:
            when, position = (self.own if self.led_here else self.heard(self.own)), None
            return _copy_said(broker, "leader", when, position)
        if broker == self.facts.broker_id:
            return _copy_said(broker, "copied", self.own, None)
        copy = self.copies.get(broker, Copy(None, -1))
        if copy.when is not None:
            return _copy_said(broker, "copied", copy.when, copy.position)
        if copy.position >= 0:
            return _copy_said(broker, "not_yet", None, copy.position)
        return _copy_said(broker, "not_recorded", None, None)

    def _in_sync(self, committed: When | None) -> Document | None:
        at_ms = (committed or self.own).until_ms
        reign = reign_at(self.reigns, at_ms) if at_ms is not None else None
        if reign is None:
            return None
        return {
            "brokers": list(reign.isr),
            "leader": None if reign.leader == NOBODY else reign.leader,
            "leader_epoch": reign.leader_epoch,
            "at_ms": at_ms,
        }

    def _elections(self) -> list[Document]:
        """Those since the append, and one under which another record was dropped from here."""
        offset = self.facts.offset
        found = [
            one
            for one in elections(self.reigns, self.cuts)
            if self._is_since(one.reign)
            or any(cut.begin <= offset < cut.end for cut in one.dropped)
        ]
        return [self._election(one) for one in found[-MAX_ELECTIONS:]]

    def _is_since(self, reign: Reign) -> bool:
        if self.facts.place is not None:
            return reign.leader_epoch > self.facts.place.header.leader_epoch
        return self.own.until_ms is not None and reign.since_ms > self.own.until_ms

    def _election(self, one: Election) -> Document:
        reign, previous = one.reign, one.previous
        known = previous is not None and previous.leader != NOBODY
        return {
            "at_ms": reign.since_ms,
            "leader": reign.leader,
            "leader_epoch": reign.leader_epoch,
            "previous_leader": previous.leader if known and previous else self._last(reign),
            "end_offset": reign.end_offset,
            "seen_at_start": reign.was_found,
            "unclean": one.unclean,
            "dropped": [self._dropped(cut) for cut in one.dropped],
        }

    def _last(self, reign: Reign) -> int | None:
        """Who led before a time without a leader."""
        return _last_leader([other for other in self.reigns if other.since_ms < reign.since_ms])

    def _dropped(self, cut: Dropped) -> Document:
        committed_to = None
        if cut.committed_end is not None and cut.committed_end > cut.begin:
            committed_to = cut.committed_end - 1
        return {
            "broker": self.facts.broker_id if cut.broker is None else cut.broker,
            "from_offset": cut.begin,
            "to_offset": cut.end - 1,
            "committed_to": committed_to,
            "at_ms": cut.at_ms,
        }


def _last_leader(known: Sequence[Reign]) -> int | None:
    return next((reign.leader for reign in reversed(known) if reign.leader != NOBODY), None)


def _copy_said(broker: int, state: str, when: When | None, position: int | None) -> Document:
    said = None if when is None else moment(when)
    return {"broker": broker, "state": state, "when": said, "fetched_to": position}
