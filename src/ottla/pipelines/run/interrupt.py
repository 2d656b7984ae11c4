"""Ctrl-C while Spark runs: KeyboardInterrupt, no wall of text, exit status 130 in a shell.

PySpark's own handler calls the JVM before it raises KeyboardInterrupt. Where the interrupted
code waits for the JVM itself, that second call breaks the first, and the user sees py4j's error.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import TracebackType


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt directly while the block runs in the main thread.

    A handler that is neither Python's nor PySpark's is left in place.
    """
    handler = signal.getsignal(signal.SIGINT)
    ours = threading.current_thread() is threading.main_thread()
    if not ours or not getattr(handler, "__module__", "").startswith("pyspark."):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def end_quietly(interrupt: KeyboardInterrupt) -> None:
    """Print no traceback should this very exception end the process; its status stays 130."""
    previous = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        if value is not interrupt:
            previous(kind, value, trace)

    sys.excepthook = hook
