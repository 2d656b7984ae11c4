"""Processes that run only seeds.

What a run leaves behind is kept until the end of its process, so a process ends after some runs.
Its successor is forked from one that has imported everything.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.pool import Pool
from typing import Any, Final, TypeVar

from simulation.world import own_process

WARMED: Final = "simulation.warmed"
WAIT_S: Final = 60.0
MAX_WAITS: Final = 10
"""One after the other without a result. Several, because the wait goes on while all processes are
stopped, as with Ctrl-Z."""

T = TypeVar("T")


class LostWorkerError(Exception):
    """A worker process was killed."""


def workers(jobs: int, runs_a_process: int) -> Pool:
    """A pool of so many processes, each of which ends after so many tasks, or with this process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([WARMED])
    return context.Pool(jobs, _begin, maxtasksperchild=runs_a_process)


def results(pool: Pool, work: Callable[[Any], T], tasks: Iterable[Any]) -> Iterator[T]:
    """Each task's result, in the order in which they end. Raises LostWorkerError.

    A pool replaces a worker that was killed, and waits for ever for the result of its task.
    """
    coming = pool.imap_unordered(work, tasks)
    waits = 0
    while True:
        try:
            result = coming.next(WAIT_S)
        except StopIteration:
            return
        except multiprocessing.TimeoutError:
            waits += 1
            if waits == MAX_WAITS:
                raise LostWorkerError(
                    f"no run has ended for {WAIT_S * MAX_WAITS:.0f} s: a worker process was "
                    "killed, for example because memory ran out"
                ) from None
            continue
        waits = 0
        yield result


def _begin() -> None:
    """Called once in each process of the pool."""
    own_process()
    threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()


def _end_with_parent() -> None:
    """A pool tells its processes to end, which one that was killed cannot. Without this they learn
    of it when they hand over the result of a run, minutes later where runs are long."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
