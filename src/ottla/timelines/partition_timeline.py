"""Records what happens to one partition, cheaply enough for the produce path.

`PartitionTimeline` keeps no history. It collects steps (see `step.py`) and returns them from
`take`, which the recorder calls every half second for partitions with new steps; it does not use
files. Events within `WINDOW_MS` after the first event of a step join that step. So under load there
are at most ten steps per second for each number, and at low load each event has its own, exact
step.

An idle partition holds a few numbers and no step. There is no clock inside: `now_ms` is passed in.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from ottla.timelines.group_timeline import UNKNOWN_END, GroupsTimeline
from ottla.timelines.pending_steps import Gathering
from ottla.timelines.replica_timeline import ReplicaTimeline
from ottla.timelines.step import Clients, Kind, Step, joined_clients

MAX_CLIENT_CHANGES: Final = 4
"""Changes of client per window that start a new step; after these, clients share a step."""
MAX_CLIENT_CHARS: Final = 256

NO_CLIENT: Final = ""


class Timeline(GroupsTimeline, Protocol):
    """What a partition records; each call costs at most about a microsecond."""

    def appended(
        self,
        base_offset: int,
        last_offset: int,
        now_ms: int,
        client_id: str,
        producer_id: int,
        is_plain: bool = False,
    ) -> None:
        """Batches `base_offset` to `last_offset` were appended to the log. `is_plain`: none of them
        is of a transaction.
        """

    def high_watermark(self, offset: int, now_ms: int) -> None:
        """The high watermark is now `offset`: everything below it is committed."""

    def started_at(self, offset: int, now_ms: int, reason: str) -> None:
        """The log start is now `offset`, for this reason: "retention.ms", "retention.bytes",
        "DeleteRecords".
        """

    def truncated(self, end_offset: int, now_ms: int) -> None:
        """The log was truncated to `end_offset` (a follower's divergence)."""

    def replicated(self, broker_id: int, offset: int, now_ms: int) -> None:
        """On the leader: the follower fetches from `offset`, so it has everything below."""

    def in_sync(
        self,
        leader: int,
        leader_epoch: int,
        isr: Iterable[int],
        end_offset: int,
        now_ms: int,
        partition_epoch: int = -1,
        *,
        leads: bool = True,
    ) -> None:
        """The leader (-1: none; `leads`: this broker) and the in-sync set; the log ends at
        `end_offset`.
        """

    def diverged(self, broker_id: int, from_offset: int, to_offset: int, now_ms: int) -> None:
        """On the leader: the follower must truncate its records from..to (exclusive)."""


class PartitionTimeline(ReplicaTimeline):
    """The timelines of one partition. `dirty` is shared with the recorder: a timeline with steps
    adds itself.
    """

    __slots__ = (
        "_clients",
        "_end_before",
        "_end_changes",
        "_end_client",
        "_end_closes_ms",
        "_end_first",
        "_end_is_plain",
        "_end_last",
        "_end_producer",
        "_end_since_ms",
        "_end_until_ms",
        "_high_before",
        "_high_closes_ms",
        "_high_first",
        "_high_last",
        "_high_since_ms",
        "_high_until_ms",
        "_opening_told",
        "_start",
        "end_at_open",
        "high_at_open",
        "opened_ms",
    )

    def __init__(
        self,
        *,
        start_offset: int,
        end_offset: int,
        high_watermark: int,
        now_ms: int,
        dirty: dict[Gathering, None],
    ) -> None:
        super().__init__(dirty)
        self.opened_ms = self._latest_ms = now_ms
        self.end_at_open = end_offset
        self.high_at_open = high_watermark
        self._start = start_offset
        self._opening_told = end_offset == 0
        self._end_closes_ms = self._end_changes = 0
        self._end_last = end_offset
        self._end_client = NO_CLIENT
        self._end_producer = -1
        self._end_is_plain = False
        self._end_until_ms = 0
        self._clients: Clients = ()
        self._high_closes_ms = 0
        self._high_last = high_watermark
        self._high_until_ms = 0

    def appended(
        self,
        base_offset: int,
        last_offset: int,
        now_ms: int,
        client_id: str,
        producer_id: int,
        is_plain: bool = False,
    ) -> None:
        """Batches `base_offset` to `last_offset` were appended, sent by this client (producer id
        -1: none).
        """
        if (
            self._end_until_ms <= now_ms < self._end_closes_ms
            and producer_id == self._end_producer
            and client_id == self._end_client
        ):
            self._end_last = last_offset + 1
            self._end_until_ms = now_ms
            if not is_plain:
                self._end_is_plain = False
            return
        self._append_differs(base_offset, last_offset + 1, now_ms, client_id, producer_id, is_plain)

    def _append_differs(
        self,
        base_offset: int,
        end: int,
        now_ms: int,
        client_id: str,
        producer_id: int,
        is_plain: bool,
    ) -> None:
        """The first append of a step, or one by a different client."""
        self._note_time(now_ms, self._end_until_ms)
        self._tell_opening()
        client = (producer_id, client_id[:MAX_CLIENT_CHARS])
        closes_ms = self._end_closes_ms
        if self._end_until_ms <= now_ms < closes_ms:
            if self._end_changes >= MAX_CLIENT_CHANGES:
                self._clients = joined_clients(self._clients, (client,))
                self._end_client, self._end_producer = client_id, producer_id
                self._end_last, self._end_until_ms = end, now_ms
                self._end_is_plain = self._end_is_plain and is_plain
                return
            self._close_end()
            self._end_changes += 1
        else:
            self._close_end()
            self._end_changes = 0
            closes_ms = now_ms + self._window_ms()
        self._end_closes_ms = closes_ms
        self._end_since_ms = self._end_until_ms = now_ms
        self._end_before, self._end_first, self._end_last = base_offset, end, end
        self._end_client, self._end_producer = client_id, producer_id
        self._end_is_plain = is_plain
        self._clients = (client,)
        self._dirty[self] = None

    def _tell_opening(self) -> None:
        if not self._opening_told:
            self._opening_told = True
            self._add(_opening_step(self.opened_ms, self.end_at_open))

    def high_watermark(self, offset: int, now_ms: int) -> None:
        """Everything below `offset` is on all in-sync replicas."""
        if self._high_until_ms <= now_ms < self._high_closes_ms and offset > self._high_last:
            self._high_last = offset
            self._high_until_ms = now_ms
            return
        before = self._high_last
        if offset == before:
            return
        self._note_time(now_ms, self._high_until_ms)
        self._close_high()
        self._high_last = offset
        if offset < before:
            return
        # Share the end's window if one is open, so that both can become one step.
        same = self._end_closes_ms if self._end_since_ms_or_0() == now_ms else 0
        self._high_closes_ms = same or now_ms + self._window_ms()
        self._high_since_ms = self._high_until_ms = now_ms
        self._high_before, self._high_first = before, offset
        self._dirty[self] = None

    def _log_end(self) -> int:
        """A group cannot have read past the leader's log end, whatever it commits. A follower's may
        be behind.
        """
        return self._end_last if self._leads else UNKNOWN_END

    def started_at(self, offset: int, now_ms: int, reason: str) -> None:
        """Records below `offset` are deleted. These steps are never coalesced: deletion is rare."""
        if offset > self._start:
            self._note_time(now_ms)
            self._add(Step(Kind.START, reason, now_ms, now_ms, self._start, offset, offset))
            self._start = offset

    def truncated(self, end_offset: int, now_ms: int) -> None:
        """The log was truncated to `end_offset`: later appends there are other records, which no
        group has read yet.
        """
        self._note_time(now_ms)
        self._close_own()
        if self._leads:
            self._return_groups(end_offset)
        else:
            # They may have read the leader's records, which this broker gets later.
            self._forget_groups(end_offset)
        end, committed = self._end_last, min(self._high_last, self._end_last)
        if end_offset < end:
            numbers = (now_ms, now_ms, end_offset, max(committed, end_offset), end)
            self._add(Step(Kind.CUT, self._role, *numbers))
        if end_offset < self.end_at_open:
            # What was found there is gone: later records have its offsets.
            self._tell_opening()
            self.end_at_open = end_offset
            self.high_at_open = min(self.high_at_open, end_offset)
        self._end_last = end_offset
        self._high_last = min(self._high_last, end_offset)
        self._start = min(self._start, end_offset)
        self._add(_opening_step(now_ms, end_offset))

    def take(self, now_ms: int, *, all_of_them: bool = False) -> list[Step]:
        """The finished steps (or all), oldest first. The timeline stays dirty while one is still
        open.
        """
        if all_of_them or not self._end_until_ms <= now_ms < self._end_closes_ms:
            self._close_end()
        if all_of_them or not self._high_until_ms <= now_ms < self._high_closes_ms:
            self._close_high()
        is_open = bool(self._end_closes_ms or self._high_closes_ms)
        is_open |= self._close_tracks(now_ms, all_of_them=all_of_them)
        is_open |= self._close_copies(now_ms, all_of_them=all_of_them)
        if all_of_them:
            self._tell_found_role()
        return self._taken(is_open=is_open)

    def _latest_until_ms(self) -> int:
        return max(self._end_until_ms, self._high_until_ms, super()._latest_until_ms())

    def _close_own(self) -> None:
        self._close_end()
        self._close_high()

    def _end_since_ms_or_0(self) -> int:
        return self._end_since_ms if self._end_closes_ms else 0

    def _close_end(self) -> None:
        if self._end_closes_ms:
            self._end_closes_ms = 0
            since_ms, until_ms = self._end_since_ms, self._end_until_ms
            before, first, last = self._end_before, self._end_first, self._end_last
            numbers = (since_ms, until_ms, before, first, last)
            self._add(Step(Kind.END, self._clients, *numbers, is_plain=self._end_is_plain))

    def _close_high(self) -> None:
        if self._high_closes_ms:
            self._high_closes_ms = 0
            since_ms, until_ms = self._high_since_ms, self._high_until_ms
            before, first, last = self._high_before, self._high_first, self._high_last
            numbers = (since_ms, until_ms, before, first, last)
            end = self._closed[-1] if self._closed else None
            if end is not None and end.kind is Kind.END and end[2:7] == numbers:
                self._closed[-1] = end._replace(kind=Kind.END_AND_HIGH)
            else:
                self._add(Step(Kind.HIGH, None, *numbers))


def _opening_step(now_ms: int, end: int) -> Step:
    return Step(Kind.OPENED, None, now_ms, now_ms, end, end, end)
