"""Checks that the topics of a running query are still those that it started with.

Spark compares offsets alone: when a topic is deleted and created again while a query runs, and
has grown past the query's offsets, Spark continues in the new one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from ottla.pipelines.errors import PipelineError

log: Final = logging.getLogger("ottla.pipelines")

INTERVAL_S: Final = 1.0
ADVICE: Final = (
    "The one before, if it was written within the last second, may have records of the new topic. "
    "Start again to see what is lost, with on_lost='skip' to continue with the new topic"
)


class TopicWatch:
    """Requests the ids of the topics, at most once a second."""

    def __init__(
        self,
        ids: Mapping[str, str],
        ask: Callable[[], Mapping[str, str]],
        clock: Callable[[], float] = time.monotonic,
        advice: str = ADVICE,
    ) -> None:
        """`ask` returns the ids of the topics now; `advice` says what to do about another id."""
        self._ids = dict(ids)
        self._ask = ask
        self._clock = clock
        self._advice = advice
        self._asked_at = clock()

    def check(self) -> None:
        """Raise PipelineError when a topic was deleted and created again."""
        if self._clock() - self._asked_at < INTERVAL_S:
            return
        now = self._ask()
        self._asked_at = self._clock()
        if name := self._changed(now):
            raise PipelineError(
                f"Topic {name!r} was deleted and created again while the query ran; this "
                f"batch is not written. {self._advice}"
            )

    def check_ended(self) -> None:
        """Raise PipelineError when a topic was created again since the last batch began.

        Brokers that do not answer now keep no query from its end: its next start asks them.
        """
        try:
            now = self._ask()
        except PipelineError as error:
            log.debug("The ids of the topics are not known at the end: %s", error)
            return
        if name := self._changed(now):
            raise PipelineError(
                f"Topic {name!r} was deleted and created again while the query ran: the last batch "
                "may have records of the new topic. Start again to see what is lost, with "
                "on_lost='skip' to read all of the new topic, also what the target has of it"
            )

    def _changed(self, now: Mapping[str, str]) -> str | None:
        """Return a topic that has another id now, None where there is none."""
        return next((name for name, its in self._ids.items() if now.get(name) != its), None)
