"""What a streams group says of its topology's description (KIP-1331), held against what must be so.
Pure.

    a description     is that of the topology epoch which the same answer names
    one that is kept  is there from then on, also after a failover, until the group is removed
    nobody is asked   for one that is kept, or that was refused for good
    one at a time     is asked, the next one only after a time

As in `streams_ledger`, an answer counts only if one broker alone was the coordinator from the
request to its answer, and if the group was not removed meanwhile. What a description is of, holds
for every answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from simulation.streams_ledger import Answered


class _Since(NamedTuple):
    """Something holds of the topology of this epoch since then."""

    epoch: int
    at_ms: int


class DescriptionLedger:
    """Of one group. What is wrong goes to `found`."""

    def __init__(
        self,
        has_led: Callable[[int, int, int], bool],
        found: Callable[[str], None],
        retry_ms: int,
    ) -> None:
        """`has_led`: see `StreamsLedger`. `retry_ms`: how long nobody else is asked."""
        self._has_led = has_led
        self._found = found
        self._retry_ms = retry_ms
        self._removed_ms = -1
        self._kept: _Since | None = None
        self._refused: _Since | None = None
        self._asked: tuple[int, int, Answered] | None = None
        """The last one that was asked, and for which topology epoch."""
        self.read_count = 0
        """How often a description was read."""

    def removed(self, at_ms: int) -> None:
        """The group is no longer there."""
        self._removed_ms = at_ms
        self._kept = self._refused = self._asked = None

    def _counts(self, answer: Answered) -> bool:
        return answer.sent_ms > self._removed_ms and self._has_led(*answer)

    def asked(self, member: int, epoch: int, answer: Answered) -> None:
        """A heartbeat of a member, whose topology has this epoch, was answered so."""
        if not self._counts(answer):
            return
        for since, why in ((self._kept, "is kept"), (self._refused, "was refused")):
            if since is not None and since.epoch == epoch and since.at_ms < answer.sent_ms:
                self._found(
                    f"member {member} is asked for the description of topology {epoch} at"
                    f" {answer.received_ms} ms, which {why} since {since.at_ms} ms"
                )
        if self._asked is not None and self._asked[1] == epoch:
            self._check_alone(member, answer, self._asked)
        self._asked = member, epoch, answer

    def _check_alone(
        self, member: int, answer: Answered, before: tuple[int, int, Answered]
    ) -> None:
        other, epoch, earlier = before
        throughout = Answered(answer.broker, earlier.sent_ms, answer.received_ms)
        is_early = answer.received_ms - earlier.sent_ms < self._retry_ms
        if is_early and earlier.broker == answer.broker and self._counts(throughout):
            self._found(
                f"members {other} and {member} are both asked for the description of topology"
                f" {epoch}, within {self._retry_ms} ms at {answer.received_ms} ms"
            )

    def kept(self, epoch: int, answer: Answered) -> None:
        """A description was taken."""
        if self._counts(answer):
            self._kept = _Since(epoch, answer.received_ms)

    def refused(self, epoch: int, answer: Answered) -> None:
        """A description was refused for good."""
        if self._counts(answer):
            self._refused = _Since(epoch, answer.received_ms)

    def read(self, epoch: int | None, answer: Answered, *, is_its: bool | None) -> None:
        """The group was described: the epoch of its topology, and whether the description is that
        one's; None if the answer says that there is none.
        """
        if is_its is not None:
            self.read_count += 1
        if is_its is False:
            self._found(f"topology {epoch} has another description at {answer.received_ms} ms")
        kept = self._kept
        was_kept = kept is not None and kept.at_ms < answer.sent_ms
        if is_its is None and was_kept and self._counts(answer):
            self._found(
                f"the description of topology {epoch}, kept since {kept and kept.at_ms} ms, is"
                f" missing at {answer.received_ms} ms"
            )
