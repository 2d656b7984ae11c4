"""How long a client waits, and what it waits for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from ottla.client.addresses import CONNECT_TIMEOUT_S

LAST_TRY_S: Final = 1.0
"""What the last attempt gets, however late it begins."""
MAX_PAUSE_S: Final = 1.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """All in seconds."""

    connect_s: float = CONNECT_TIMEOUT_S
    silent_s: float = 2.0
    """For a sign of life of one broker while there are others to ask."""
    answer_s: float = 30.0
    """For a response."""
    retry_for_s: float = 30.0
    """While the cluster says that it should be asked again: an election of the controller takes up
    to one session timeout of ZooKeeper."""
    pause_s: float = 0.1
    """Before the first retry; each further one is twice as long, up to MAX_PAUSE_S."""
    notice_s: float = 2.0
    """After this long, the user is told what is being waited for."""
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


PATIENCE: Final = Patience()


def poll_until(
    look: Callable[[], T],
    is_done: Callable[[T], bool],
    *,
    within_s: float,
    pause_s: float,
    patience: Patience = PATIENCE,
) -> T:
    """What `look` finds once it is done, or what it found last when the time is over. It looks at
    least once. Of `patience` only the clock counts.
    """
    until_s = patience.now() + within_s
    while not is_done(found := look()) and patience.now() < until_s:
        patience.sleep(pause_s)
    return found


class Retry:
    """The attempts of one request."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._pause_s = patience.pause_s
        self._until = patience.now() + patience.retry_for_s

    @property
    def is_over(self) -> bool:
        """Whether the next failure is the last."""
        return self._patience.now() > self._until

    @property
    def left_s(self) -> float:
        """How long the next attempt may take."""
        return max(self._until - self._patience.now(), LAST_TRY_S)

    def wait(self) -> None:
        """The pause before the next attempt."""
        self._patience.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, MAX_PAUSE_S)
