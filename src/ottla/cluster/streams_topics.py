"""Creates the internal topics of streams groups (KIP-1071), beside the heartbeats that need them.

A member's next heartbeat finds the topics, or hears why they could not be created: errors are kept
for a while, in which nothing is tried again. Kafka's counterpart is AutoTopicCreationManager.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from ottla.controller.plan import Outcome
from ottla.controller.topics import NewTopic
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock

logger = logging.getLogger("ottla.cluster")

MAX_ERRORS: Final = 1_000
"""Topics whose error is kept; more forget the oldest."""


class StreamsTopics:
    """For the event loop's thread only."""

    def __init__(
        self,
        clock: Clock,
        create: Callable[[Sequence[NewTopic]], Awaitable[dict[str, Outcome]]],
    ) -> None:
        """`create` asks the controller; a topic that exists is not an error."""
        self._clock = clock
        self._create = create
        self._background = Background(logger, "streams topics")
        self._under_way: set[str] = set()
        self._errors: dict[str, tuple[int, str]] = {}
        """Until when each is kept, and its text; in the order of their ends, about."""

    def close(self) -> None:
        """Nothing is created any more."""
        self._background.cancel()

    def create(self, topics: Iterable[NewTopic], keep_errors_ms: int) -> None:
        """Begins to create those that nobody creates now, and that have not just failed."""
        now_ms = self._clock.monotonic_ms()
        wanted = [
            topic
            for topic in topics
            if topic.name not in self._under_way and self._error(topic.name, now_ms) is None
        ]
        if wanted:
            self._under_way.update(topic.name for topic in wanted)
            self._background.spawn(self._create_these(wanted, keep_errors_ms))

    async def _create_these(self, topics: Sequence[NewTopic], keep_errors_ms: int) -> None:
        try:
            outcomes = await self._create(topics)
        finally:
            self._under_way.difference_update(topic.name for topic in topics)
        until_ms = self._clock.monotonic_ms() + keep_errors_ms
        failed = [(name, outcome) for name, outcome in outcomes.items() if outcome.failed]
        for name, outcome in failed:
            why = outcome.message or outcome.code.name.replace("_", " ")
            self._errors.pop(name, None)
            self._errors[name] = until_ms, why
        if failed:
            name, _ = failed[-1]
            more = f" and {len(failed) - 1:,} more" if len(failed) > 1 else ""
            logger.warning(
                "the internal topic %s%s cannot be created: %s", name, more, self._errors[name][1]
            )
        while len(self._errors) > MAX_ERRORS:
            del self._errors[next(iter(self._errors))]

    def errors(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Why these could not be created lately."""
        now_ms = self._clock.monotonic_ms()
        found = ((name, self._error(name, now_ms)) for name in names)
        return [(name, why) for name, why in found if why is not None]

    def _error(self, name: str, now_ms: int) -> str | None:
        until_ms, why = self._errors.get(name, (0, ""))
        if until_ms > now_ms:
            return why
        self._errors.pop(name, None)
        return None
