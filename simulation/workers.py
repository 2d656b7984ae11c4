"""Processes that run only seeds.

What a run leaves behind is kept until the end of its process, so a process ends after some runs.
Its successor is forked from one that has imported everything.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from multiprocessing.pool import Pool

from simulation.world import own_process

WARMED = "simulation.warmed"


def workers(jobs: int, runs_a_process: int) -> Pool:
    """A pool of so many processes, each of which ends after so many tasks, or with this process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([WARMED])
    return context.Pool(jobs, _begin, maxtasksperchild=runs_a_process)


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
