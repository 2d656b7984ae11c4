"""Imported where worker processes are forked from: what a seed imports and compiles at first use is
then there for all of them.
"""

from __future__ import annotations

import gc

from simulation.world import own_process, run

own_process()
run(0)
# Reference counts aside, workers share these pages.
gc.freeze()
