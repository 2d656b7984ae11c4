"""Processes that run only seeds.

What a run leaves behind is kept until the end of its process, so a process ends after some runs.
Its successor is forked from one that has imported everything.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.pool import Pool

from simulation.world import own_process

WARMED = "simulation.warmed"


def workers(jobs: int, runs_a_process: int) -> Pool:
    """A pool of so many processes, each of which ends after so many tasks."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([WARMED])
    return context.Pool(jobs, own_process, maxtasksperchild=runs_a_process)
