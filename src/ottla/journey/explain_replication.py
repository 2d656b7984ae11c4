"""The replicas' part of a journey's document. Pure.

    "replicated": {..., "leader", "leader_epoch", "in_sync_now": [...],
      "copies": [{"broker", "state": "leader", "copied", "stored" (by this broker, it is not known
                  how it got it), "not_yet" or "not_recorded" (no fetch is known), "when",
                  "fetched_to"}],
      "in_sync": {"brokers", "leader", "leader_epoch", "at_ms"} or null,
      "in_sync_possible": [{"brokers", "leader", "leader_epoch"}],
      "elections": [{"at_ms", "leader", "leader_epoch", "previous_leader", "start_offset",
                     "end_offset", "seen_at_start", "unclean": true, false or null for unknown,
                     "dropped": [{"broker", "from_offset", "to_offset", "committed_to", "at_ms",
                                 "replaced_by_epoch"}]}]}

`in_sync` is null if unknown. If only a range is known for the commit time, and an election or
a change of the in-sync set falls into it, `in_sync_possible` lists all possible states.

`at_ms`: when this broker learned of the election; it was earlier if another broker was elected, or
if this one found it so at its start. `start_offset` is the first offset of the leader epoch (null:
not known, or nothing was written in it), `end_offset` where this broker's own log ended then.
`previous_leader` is null where states between both are not known.

`to_offset` is the last offset that was truncated, `committed_to` the last of these that had been
committed (null: none, or unknown on that broker), `replaced_by_epoch` the leader epoch that begins
where they began (null: none).
"""

from typing import Final

from ottla.journey.clock_jumps import Jumps, told
from ottla.journey.facts import Facts
from ottla.journey.moment import Document, moment
from ottla.journey.offset_history import Appended, When
from ottla.journey.replica_history import (
    Copy,
    Dropped,
    Election,
    Leadership,
    copies,
    dropped,
    elections,
    leader_of,
    leadership_at,
    leaderships,
    leaderships_between,
    previous_leader,
)

MAX_ELECTIONS: Final = 50
MAX_POSSIBLE: Final = 4
"""Limit for possible in-sync sets; if there are more, none is listed."""
NOBODY: Final = -1


class Replicas:
    """What is known about the replicas, for one offset."""

    def __init__(
        self, facts: Facts, was: Appended, jumps: Jumps | None = None, *, is_hidden: bool = False
    ) -> None:
        """`is_hidden`: it is not known which record the copies are of."""
        self.facts = facts
        self.jumps = jumps
        self.own = was.when
        """When it was appended to this broker's log."""
        self.was_copied = was.was_copied
        steps = facts.steps or ()
        self.leaderships = leaderships(steps)
        self.copies = {} if is_hidden else copies(steps, facts.offset)
        self.cuts = dropped(steps)
        self.appended_by = self._appended_by()

    def _appended_by(self) -> int | None:
        """The broker that assigned the offset; None if unknown."""
        facts = self.facts
        if self.was_copied is False or (not self.leaderships and len(facts.replicas) <= 1):
            return facts.broker_id
        if facts.location is not None:
            return leader_of(self.leaderships, facts.location.header.leader_epoch)
        if self.own.is_exact and self.own.since_ms is not None and not self._is_twice(self.own):
            # A change in the same millisecond may have come before or after.
            then = leadership_at(self.leaderships, self.own.since_ms)
            before = leadership_at(self.leaderships, self.own.since_ms - 1)
            is_known = then is not None and before is not None and then.leader == before.leader
            if then is not None and is_known and then.leader >= 0 == then.leader_epoch:
                return then.leader  # a later leader may have had it from one before
        return None

    @property
    def always_led(self) -> bool:
        """Whether this broker has led since the partition was made."""
        known = self.leaderships
        if not known:
            return len(self.facts.replicas) <= 1
        are_own = all(one.leader == self.facts.broker_id for one in known)
        return are_own and known[0].leader_epoch == 0

    @property
    def led_here(self) -> bool:
        if self.appended_by != self.facts.broker_id:
            return False
        # A leader that has lost its own records copies them again.
        return self.was_copied is False or len(self.facts.replicas) <= 1

    def learned(self, when: When) -> When:
        """When the leader did what this broker recorded: earlier, if this broker was a follower."""
        return told(self.jumps, when if self.led_here else When(None, when.until_ms))

    def committed(self, passed: When) -> When:
        """When it was committed, by when this broker's high watermark passed it. If another broker
        led by then, that was earlier.
        """
        if not self.led_here:
            return self.learned(passed)
        if self._led_until(passed):
            return told(self.jumps, passed)
        return told(self.jumps, When(self.own.since_ms, passed.until_ms))

    def _is_twice(self, when: When) -> bool:
        """Whether a clock may have had the time twice, so that it tells no leadership."""
        if self.jumps is None:
            return False
        is_before = when.until_ms is not None and when.until_ms < self.jumps.first_ms
        return not (is_before or (when.since_ms or 0) > self.jumps.last_ms)

    def _led_until(self, when: When) -> bool:
        """Whether this broker appended it, and led from then on without a break."""
        if not self.led_here or when.until_ms is None or self._is_twice(when):
            return False
        own = leadership_at(self.leaderships, self.own.until_ms or when.until_ms)
        then = leadership_at(self.leaderships, when.until_ms)
        if own is None or then is None:
            return own is then
        return own.leader_epoch == then.leader_epoch

    def document(self, committed: When | None) -> Document:
        """The fields about replicas. `committed`: when the high watermark passed."""
        facts = self.facts
        at_ms, possible = self._in_sync(committed)
        return {
            "leader": None if facts.leader == NOBODY else facts.leader,
            "leader_epoch": facts.leader_epoch,
            "in_sync_now": list(facts.isr),
            "copies": [self._copy(broker) for broker in facts.replicas],
            "in_sync": possible[0] | {"at_ms": at_ms} if len(possible) == 1 else None,
            "in_sync_possible": possible if len(possible) > 1 else [],
            "elections": self._elections(),
        }

    def _copy(self, broker: int) -> Document:
        if broker == self.appended_by:
            when, position = (self.own if self.led_here else self.learned(self.own)), None
            return _copy_document(broker, "leader", when, position)
        if broker == self.facts.broker_id:
            is_copy = self.was_copied or self.appended_by is not None
            return _copy_document(broker, "copied" if is_copy else "stored", self.own, None)
        copy = self.copies.get(broker, Copy(None, -1))
        if self.jumps is not None:
            # Which of its fetches was the last one is not certain.
            known = None if copy.when is None else self.jumps.told(copy.when)
            copy = copy._replace(when=known, position=copy.position if known else -1)
        if copy.when is None and self.facts.fetched is not None:
            # Steps may be lost, so what the leader knows now counts.
            copy = Copy(None, self.facts.fetched.get(broker, -1))
            if copy.position > self.facts.offset:
                copy = copy._replace(when=When(None, None))
        if copy.when is not None:
            return _copy_document(broker, "copied", copy.when, copy.position)
        if copy.position >= 0:
            return _copy_document(broker, "not_yet", None, copy.position)
        return _copy_document(broker, "not_recorded", None, None)

    def _in_sync(self, committed: When | None) -> tuple[int | None, list[Document]]:
        """When it was committed (else: appended), and the possible in-sync sets; none if
        unknown.
        """
        when = committed or self.learned(self.own)
        if when.until_ms is None or not self.leaderships:
            return None, []
        if self.jumps is not None and when.until_ms >= self.jumps.first_ms:
            return when.until_ms, []
        if self.leaderships[-1].leader_epoch != self.facts.leader_epoch:
            return when.until_ms, []  # the last ones are lost
        if -1 < self.leaderships[-1].partition_epoch < self.facts.partition_epoch:
            return when.until_ms, []
        location = self.facts.location
        found = leaderships_between(
            self.leaderships,
            when.since_ms if committed is None else self._not_before(when),
            when.until_ms,
            None if location is None else location.header.leader_epoch,
            is_follower=not self._led_until(when),
        )
        if found is None or len(found) > MAX_POSSIBLE:
            return when.until_ms, []
        return when.until_ms, [
            {
                "brokers": list(leadership.isr),
                "leader": None if leadership.leader == NOBODY else leadership.leader,
                "leader_epoch": leadership.leader_epoch,
            }
            for leadership in found
        ]

    def _not_before(self, when: When) -> int | None:
        """The earliest time of a commit. A follower learns of it later than the leader decides it;
        but if this broker was in sync, it was committed after this broker had it.
        """
        if when.since_ms is not None or self.own.since_ms is None:
            return when.since_ms
        then = leadership_at(self.leaderships, self.own.since_ms)
        in_sync = then is not None and self.facts.broker_id in then.isr
        return self.own.since_ms if in_sync else None

    def _elections(self) -> list[Document]:
        """Elections since the append, and those that truncated another record at this offset
        here.
        """
        offset = self.facts.offset
        found = [
            one
            for one in elections(self.leaderships, self.cuts)
            if self._is_since(one.leadership)
            or any(cut.begin <= offset < cut.end for cut in one.dropped)
        ]
        return [self._election(one) for one in found[-MAX_ELECTIONS:]]

    def _is_since(self, leadership: Leadership) -> bool:
        if self.facts.location is not None:
            return leadership.leader_epoch > self.facts.location.header.leader_epoch
        return self.own.until_ms is not None and leadership.since_ms > self.own.until_ms

    def _election(self, one: Election) -> Document:
        leadership = one.leadership
        return {
            "at_ms": leadership.since_ms,
            "leader": leadership.leader,
            "leader_epoch": leadership.leader_epoch,
            "previous_leader": previous_leader(self.leaderships, leadership),
            "start_offset": self.start_of(leadership),
            "end_offset": leadership.end_offset,
            "seen_at_start": leadership.was_found,
            "unclean": one.unclean,
            "dropped": [self._dropped(cut) for cut in one.dropped],
        }

    def unclean_since(self, passed: When | None) -> int | None:
        """When the last election was with which the record may have replaced another one, or come
        back after another leader had dropped it: not a clean one, as far as is known.
        """
        location = self.facts.location
        committed_ms = None if passed is None else passed.until_ms
        epoch = -1 if location is None else location.header.leader_epoch
        # Who had another record, and led after this one was written, may have given it to groups.
        others = [
            cut.at_ms
            for cut in self.cuts
            if cut.broker is not None
            and cut.begin <= self.facts.offset < cut.end
            and any(
                one.leader_epoch > epoch and one.since_ms <= cut.at_ms for one in self.leaderships
            )
        ]
        found = [
            one.leadership.since_ms
            for one in elections(self.leaderships, ())
            if one.unclean is not False
            and self._may_follow(one, committed_ms)
            and one.leadership.leader_epoch >= epoch
            # The epoch that a broker finds first is no election that it has learned of.
            and (one.previous is not None or one.leadership.leader_epoch > 0)
        ]
        return max((*found, *others), default=None)

    def _may_follow(self, one: Election, committed_ms: int | None) -> bool:
        """Whether another leader may have had other records before this election. What was
        committed survives all but an unclean one, which this broker may not have learned of.
        """
        if one.unclean or committed_ms is None or self.jumps is not None:
            return True
        return committed_ms >= one.leadership.since_ms or self._has_missed(one)

    def _has_missed(self, one: Election) -> bool:
        """Whether another broker may have led between, of whose records this log has none."""
        if one.previous is None:
            return False
        between = range(one.previous.leader_epoch + 1, one.leadership.leader_epoch)
        return sum(epoch in between for epoch, _ in self.facts.epoch_starts) < len(between)

    def start_of(self, leadership: Leadership) -> int | None:
        """The first offset of its epoch."""
        facts = self.facts
        for epoch, start in facts.epoch_starts:
            # The oldest epoch's first records may have been deleted.
            if epoch == leadership.leader_epoch and (start > facts.start_offset or start == 0):
                return start
        is_own = leadership.leader == facts.broker_id and not leadership.was_found
        return leadership.end_offset if is_own else None

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
            "replaced_by_epoch": self._epoch_from(cut.begin),
        }

    def _epoch_from(self, offset: int) -> int | None:
        """The epoch whose first record has the offset: it began without what came from there on."""
        starts = {start: epoch for epoch, start in reversed(self.facts.epoch_starts)}
        return starts.get(offset) if offset > self.facts.start_offset else None


def _copy_document(broker: int, state: str, when: When | None, position: int | None) -> Document:
    said = None if when is None else moment(when)
    return {"broker": broker, "state": state, "when": said, "fetched_to": position}
