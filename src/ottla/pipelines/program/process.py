"""The end of Spark's process and of this one."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any


def stop_spark(spark: Any) -> None:
    """Stop Spark; a signal to the whole process group may have ended it already."""
    from py4j.protocol import Py4JError

    try:
        spark.stop()
    except (Py4JError, OSError):
        kill_spark()


def kill_spark() -> None:
    """End Spark's process, if this one has started it."""
    if "pyspark.core.context" in sys.modules:
        from ottla.pipelines.spark.jvm.process import kill_process

        kill_process()


def end_at_once(code: int, leave: Callable[[int], Any] = os._exit) -> None:
    """End this process and Spark's, without waiting for anything."""
    # A thread that waits for Spark fails now, which is no news.
    threading.excepthook = lambda _: None
    kill_spark()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    leave(code)
