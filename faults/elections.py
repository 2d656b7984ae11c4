"""Finds the elections that can have truncated a record: the only excuse for a loss. Pure.

A lost record that was acknowledged at offset `o` was in the log of a leader whose successor's log
ended at or before `o`, or, if the successor was not in sync, held another record there. The leader
epochs of the surviving log say where each epoch began (KIP-101). The coordination tree says when
each leader was elected and from which ISR.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from faults.anomaly import Policy
from faults.history import Elected, Epochs, Event


@dataclass(frozen=True, slots=True)
class Election:
    """One new leader epoch. `is_unclean`: the leader was not in the ISR before."""

    at_ms: int
    leader: int
    leader_epoch: int
    is_unclean: bool


STALE_LEADER_MS = 60_000
"""For this time a leader that is cut off may still acknowledge acks=1: it cannot know."""


class Elections:
    """The elections of all partitions of a history."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._of: dict[int, list[Election]] = defaultdict(list)
        self._starts: dict[int, tuple[tuple[int, int], ...]] = {}
        before: dict[int, Elected] = {}
        for event in events:
            if isinstance(event, Epochs):
                self._starts[event.partition] = event.starts
            elif isinstance(event, Elected):
                old = before.get(event.partition)
                before[event.partition] = event
                if old is None or event.leader_epoch > old.leader_epoch:
                    unclean = old is not None and event.leader not in (-1, *old.isr)
                    self._of[event.partition].append(
                        Election(event.at_ms, event.leader, event.leader_epoch, unclean)
                    )

    def excuse(
        self,
        policy: Policy,
        partition: int,
        offset: int,
        acknowledged_ms: int,
        *,
        is_taken: bool = False,
        leader_epoch: int = -1,
    ) -> str | None:
        """Why the policy allows the loss of a record that was seen at this offset and time.

        `leader_epoch`: that in which the record was appended, if it is known. Then the election of
        a later epoch may also be before that time: a leader that was replaced and does not know it
        acknowledges a record as soon as the in-sync followers that it knows have it, as in Kafka.
        `is_taken`: another record has this offset, so two leaders assigned it. With acks=1, one may
        have been elected before the other, which did not know of it, acknowledged its record.
        """
        if policy is Policy.strict:
            return None
        slack_ms = STALE_LEADER_MS if policy is Policy.acks_1 and is_taken else 0
        # The first leader has no predecessor, so it truncates nothing.
        for election in self._of[partition][1:]:
            is_later = election.at_ms + slack_ms >= acknowledged_ms
            if leader_epoch >= 0 and election.leader_epoch > leader_epoch:
                is_later = True
            if not is_later or election.leader == -1:
                continue
            if policy is Policy.unclean and not election.is_unclean:
                continue
            start = self._start(partition, election.leader_epoch)
            if start is None:
                continue
            if start <= offset or (
                election.is_unclean
                and self._is_older(partition, offset, acknowledged_ms, leader_epoch)
            ):
                how = "uncleanly " if election.is_unclean else ""
                return (
                    f"broker {election.leader} was {how}elected in epoch {election.leader_epoch}"
                    f" at {election.at_ms} ms, and its log ended at {start}"
                )
        return None

    def moved(self, policy: Policy, partition: int, offset: int) -> str | None:
        """Why the policy allows that the record here comes after later ones of its producer.

        With acks=1 and without idempotence, a request to the leader before is tried again after
        later ones were sent to the new leader: one request at a time is a limit of each connection.
        So the record was appended by a leader that was elected.
        """
        if policy is not Policy.acks_1:
            return None
        for election in self._of[partition][1:]:
            start = self._start(partition, election.leader_epoch)
            if election.leader != -1 and start is not None and start <= offset:
                return f"broker {election.leader} was elected in epoch {election.leader_epoch}"
        return None

    def led_uncleanly(self, partition: int, leader_epoch: int, until_ms: int) -> str | None:
        """Why a client may have met a log without a record of this epoch: an out-of-sync leader
        was elected later. The surviving log shows no trace of it, if another unclean election
        brought the record back."""
        for election in self._of[partition]:
            is_later = election.leader_epoch > leader_epoch and election.at_ms <= until_ms
            if is_later and election.is_unclean:
                return (
                    f"broker {election.leader} was uncleanly elected in epoch "
                    f"{election.leader_epoch} at {election.at_ms} ms, after epoch {leader_epoch}"
                )
        return None

    def _is_older(
        self, partition: int, offset: int, acknowledged_ms: int, leader_epoch: int
    ) -> bool:
        """Whether the surviving log has an older record at this offset; only the election of an
        out-of-sync replica can bring it back."""
        if leader_epoch < 0:
            then = (each for each in self._of[partition] if each.at_ms <= acknowledged_ms)
            leader_epoch = max((each.leader_epoch for each in then), default=-1)
        there = [epoch for epoch, start in self._starts.get(partition, ()) if start <= offset]
        return bool(there) and there[-1] < leader_epoch

    def _start(self, partition: int, leader_epoch: int) -> int | None:
        """The start offset of this epoch, or of the next one in the log: an epoch without records
        may be missing from it."""
        starts = self._starts.get(partition, ())
        return next((start for epoch, start in starts if epoch >= leader_epoch), None)
