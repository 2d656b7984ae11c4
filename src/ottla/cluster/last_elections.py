"""The last elections that this broker has seen: of leaders, and of controllers.

Kept in memory, from its start on. The controller sees its own; any other broker sees them when it
fetches them, so that the next controller knows what happened before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from ottla.controller.elected import Elected, elected
from ottla.controller.image import (
    BrokerVanished,
    ClusterImage,
    ControllerChanged,
    MetadataDelta,
    PartitionsChanged,
)
from ottla.runtime.clock import Clock

MAX_ELECTIONS: Final = 200
MAX_CONTROLLERS: Final = 20
RESTARTED_WITHIN_MS: Final = 1000
"""A broker that comes again as another process vanishes and appears in one change."""


class NewController(NamedTuple):
    """`broker` took over with this epoch."""

    at_ms: int
    broker: int
    epoch: int


class LastElections:
    """For the event loop's thread only."""

    def __init__(
        self, image: ClusterImage, clock: Clock, stopping: Callable[[], Collection[int]]
    ) -> None:
        """`stopping`: the brokers that have asked to stop, as far as this one knows."""
        self.since_ms = -1
        """The time of the first delta: the broker starts."""
        self.controllers: deque[NewController] = deque(maxlen=MAX_CONTROLLERS)
        self.count = 0
        """Of leaders, also those that are not kept."""
        self._kept: deque[tuple[int, Elected]] = deque(maxlen=MAX_ELECTIONS)
        self._image, self._clock, self._stopping = image, clock, stopping
        self._vanished_ms: dict[int, int] = {}

    def before(self, delta: MetadataDelta) -> None:
        """A delta will be in the image in a moment."""
        if self.since_ms < 0:
            self.since_ms = self._clock.now_ms()
        if isinstance(delta, ControllerChanged):
            if delta.epoch != self._image.controller_epoch:
                now_ms = self._clock.now_ms()
                self.controllers.append(NewController(now_ms, delta.broker_id, delta.epoch))
            return
        if isinstance(delta, BrokerVanished):
            self._vanished_ms[delta.broker_id] = self._clock.monotonic_ms()
            return
        if not isinstance(delta, PartitionsChanged):
            return
        self._forget_old()
        now_ms = self._clock.now_ms()
        stopping, restarted = self._stopping(), self._vanished_ms.keys()
        for each in elected(self._image, delta, stopping=stopping, restarted=restarted):
            self.count += 1
            self._kept.append((now_ms, each))

    def _forget_old(self) -> None:
        now_ms = self._clock.monotonic_ms()
        for broker, at_ms in list(self._vanished_ms.items()):
            if now_ms - at_ms > RESTARTED_WITHIN_MS:
                del self._vanished_ms[broker]

    def newest(self) -> Iterator[tuple[int, Elected]]:
        """When, in ms since 1970, and what; the newest first."""
        return reversed(self._kept)
