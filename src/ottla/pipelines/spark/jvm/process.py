"""Spark's own process: whether it has ended, and how."""

from __future__ import annotations

import subprocess
from typing import Final

from ottla.pipelines.spark.jvm.causes import Cause

_END_WITHIN_S: Final = 5.0
_WHY: Final = {52: "out of memory, exit code 52", -9: "killed, perhaps for lack of memory"}


def process_ended(*, is_silent: bool = False) -> Cause | None:
    """Return how Spark's own process ended, None while it runs or is unknown.

    `is_silent`: it takes no connection any more; its end is then waited for.
    """
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        code = process.wait(_END_WITHIN_S) if is_silent else process.poll()
    except subprocess.TimeoutExpired:
        return None
    if code is None:
        return None
    why = _WHY.get(code, f"exit code {code}")
    return Cause("ProcessEnded", f"Spark's process ended ({why})")
