"""Checks that the topics of a running query are still those that it started with.

Spark compares offsets alone: when a topic is deleted and created again while a query runs, and
has grown past the query's offsets, Spark continues in the new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from ottla.pipelines.errors import PipelineError

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
        for name, topic_id in self._ids.items():
            if now.get(name) != topic_id:
                raise PipelineError(
                    f"Topic {name!r} was deleted and created again while the query ran; this "
                    f"batch is not written. {self._advice}"
                )
