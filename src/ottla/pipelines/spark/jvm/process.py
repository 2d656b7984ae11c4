"""Spark's own process, where this one has started it: whether it has ended, and how."""

from __future__ import annotations

import subprocess
from typing import Final

from ottla.pipelines.failures.cause import Cause
from ottla.pipelines.spark.jvm.attributes import gateway

_END_WITHIN_S: Final = 5.0
_WHY: Final = {52: "out of memory, exit code 52", -9: "killed, perhaps for lack of memory"}


def process_ended(*, is_silent: bool = False) -> Cause | None:
    """Return how Spark's own process ended, None while it runs or is unknown.

    `is_silent`: it takes no connection any more; its end is then waited for.
    """
    process = _process()
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


def process_id() -> int:
    """Return the number of the process, which this one has started."""
    process = _process()
    assert process is not None
    return process.pid


def kill_process() -> None:
    """End the process at once."""
    process = _process()
    if process is not None:
        process.kill()


def _process() -> subprocess.Popen[bytes] | None:
    return getattr(gateway(), "proc", None)
