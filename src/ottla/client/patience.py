"""How long a client waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ottla.client.addresses import CONNECT_TIMEOUT_S

LAST_TRY_S: Final = 1.0
"""What the last attempt gets, however late it begins."""
MAX_PAUSE_S: Final = 1.0


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
