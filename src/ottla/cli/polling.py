"""Waits for what the brokers do after they have answered."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def poll_until(
    look: Callable[[], T], is_done: Callable[[T], bool], *, within_s: float, pause_s: float
) -> T:
    """What `look` finds once it is done, or what it found last when the time is over. It looks at
    least once.
    """
    until_s = time.monotonic() + within_s
    while not is_done(found := look()) and time.monotonic() < until_s:
        time.sleep(pause_s)
    return found
