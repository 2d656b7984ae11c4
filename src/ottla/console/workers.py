"""The threads in which pages ask the cluster: the client and librdkafka block.

The number of threads is bounded, and so is the number of pages that wait for one: the next is
refused at once, instead of waiting without end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, Final, TypeVar

from ottla.console.errors import BusyError, StoppingError

MAX_THREADS: Final = 8
MAX_WAITING: Final = 64

T = TypeVar("T")


class Workers:
    """Stop it, on the loop, so that nobody waits for the threads; then close it: that waits for
    what they do now.
    """

    def __init__(
        self,
        threads: int = MAX_THREADS,
        waiting: int = MAX_WAITING,
        what: str = "pages wait for the cluster",
    ) -> None:
        """`what`: is done, as the end of a sentence."""
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="console")
        self._most = threads + waiting
        self._what = what
        self._lock = Lock()
        self.waiting = 0
        """What was given to the threads and is not done, also if its visitor has left."""
        self._awaited: set[asyncio.Future[Any]] = set()
        self._is_stopping = False

    async def run(self, function: Callable[[], T]) -> T:
        """The function's result, from a thread. Raises BusyError if too many wait, and
        StoppingError once it stops.
        """
        if self._is_stopping:
            raise StoppingError
        with self._lock:
            if self.waiting >= self._most:
                raise BusyError(
                    f"{self.waiting} {self._what}.",
                    "Wait a moment and load it again.",
                )
            self.waiting += 1
        given = self._threads.submit(function)
        given.add_done_callback(self._is_done)
        answer = asyncio.wrap_future(given)
        self._awaited.add(answer)
        try:
            return await answer
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._is_stopping and task is not None and not task.cancelling():
                raise StoppingError from None
            raise  # the visitor has left
        finally:
            self._awaited.discard(answer)

    def stop(self) -> None:
        """Who waits for an answer is told at once that there will be none."""
        self._is_stopping = True
        for each in [*self._awaited]:
            each.cancel()

    def _is_done(self, _given: Future[Any]) -> None:
        with self._lock:
            self.waiting -= 1

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
