"""The producers of one transactional id, which take over from each other. Pure.

Each asks for an epoch and gets a token with the answer. The coordinator may have decided two
requests that overlap in the other order than their answers arrived. So a producer is known to be
fenced only once one got its epoch that began to ask after this one had its answer.
"""

from __future__ import annotations

from typing import Final

ANSWERED_WITHIN_MS: Final = 20_000
"""After this time, a request without an answer no longer takes effect: cuts and pauses are over."""


class Instances:
    """The order of the producers, as far as it is known."""

    def __init__(self) -> None:
        self._newest = 0
        self._fenced = 0
        """Tokens up to this one are fenced."""
        self._attempts = 0
        self._open: dict[int, tuple[int, int]] = {}
        """Attempts without an answer: their times, and the newest token then."""
        self._overlapping: set[int] = set()
        """Tokens that another one was given between their request and their answer."""
        self._attempts_at: dict[int, int] = {}
        """By token: how many attempts there were."""
        self._met: set[int] = set()
        """The newest tokens when an attempt was refused, which may have met their transactions."""

    def asking(self, now_ms: int) -> int:
        """A producer is about to ask for an epoch; returns the attempt."""
        self._attempts += 1
        self._open[self._attempts] = now_ms, self._newest
        return self._attempts

    def refused(self, attempt: int) -> None:
        """The attempt has an answer, which is an error.

        A producer with an older epoch is fenced only after the transaction that it found open is
        aborted, as in Kafka. So it may have aborted that of a newer one.
        """
        del self._open[attempt]
        self._met.add(self._newest)

    def initialized(self, attempt: int) -> int:
        """The attempt has an answer, with an epoch; returns the producer's token."""
        _, before = self._open.pop(attempt)
        self._fenced = max(self._fenced, before)
        if before != self._newest:
            self._overlapping.add(self._newest + 1)
        self._newest += 1
        self._attempts_at[self._newest] = self._attempts
        return self._newest

    def is_fenced(self, token: int) -> bool:
        """Another producer has taken over."""
        return token <= self._fenced

    def is_last(self, token: int) -> bool:
        """No other producer got an epoch since this one asked for its own."""
        return token == self._newest and token not in self._overlapping

    def may_be_fenced(self, token: int, now_ms: int) -> bool:
        """Another producer may have taken over, with an answer or without."""
        return (
            not self.is_last(token)
            or token in self._met
            or self._attempts > self._attempts_at[token]
            or any(now_ms - asked_ms < ANSWERED_WITHIN_MS for asked_ms, _ in self._open.values())
        )
