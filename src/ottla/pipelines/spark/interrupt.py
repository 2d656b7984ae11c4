"""Ctrl-C and the end of a program, while Spark's JVM runs beside it.

PySpark starts the JVM with SIGINT ignored, so the terminal's Ctrl-C reaches Python alone. Its
own handler then calls the JVM through the connection that the interrupted call still reads from,
which fails in three tracebacks. Here the handler only raises KeyboardInterrupt; py4j closes the
interrupted connection, and the next call opens another one.

When the program ends, the queries that still run are stopped before the JVM loses its Python;
otherwise Spark logs several hundred lines about a callback that does not answer.
"""

from __future__ import annotations

import atexit
import logging
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ottla.pipelines.spark.jvm.connections import keeper_of_idle
from ottla.pipelines.spark.jvm.context import is_stopped
from ottla.pipelines.spark.jvm.output import silence_stderr

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_WITHIN_S: Final = 15

_sessions: Final[list[SparkSession]] = []


def current_handler() -> Any:
    """Return the program's handler of SIGINT, before PySpark replaces it."""
    return signal.getsignal(signal.SIGINT)


def handle(spark: SparkSession, before: Any) -> None:
    """Handle Ctrl-C and the program's end for a new session.

    `before` is what `current_handler` returned before the session was started: a handler of the
    program's own is put back.
    """
    if threading.current_thread() is threading.main_thread():
        own = callable(before) and before is not signal.default_int_handler
        ours = getattr(before, "__module__", None) in (__name__, "pyspark.core.context")
        keep = before if (own and not ours) or before is signal.SIG_IGN else _interrupter()
        signal.signal(signal.SIGINT, keep)
        if sys.excepthook is sys.__excepthook__:
            sys.excepthook = _say_interrupted
    if not _sessions:
        atexit.register(_stop_all)
    _sessions[:] = [spark]  # a process has one context at a time


def _interrupter() -> Callable[[int, FrameType | None], NoReturn]:
    keep_idle = keeper_of_idle()

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        _hush_py4j()
        keep_idle()
        raise KeyboardInterrupt

    return interrupt


def _hush_py4j() -> None:
    """Drop the tracebacks that py4j logs for each call that ends early."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    for name in ("py4j.java_gateway", "py4j.clientserver"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if _is_not_of_py4j not in logging.root.filters:
        logging.root.addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module not in ("java_gateway", "clientserver")


def _say_interrupted(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print("Interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def _stop_all() -> None:
    """Stop what still runs, in a thread of its own: a call to the JVM may not return."""
    _hush_py4j()
    stopping = threading.Thread(target=_stop_queries, args=tuple(_sessions), daemon=True)
    stopping.start()
    stopping.join(STOP_WITHIN_S)


def _stop_queries(spark: SparkSession) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if is_stopped(spark):
        return
    try:
        active = spark.streams.active
        if active:
            spark.sparkContext.setLogLevel("OFF")
            # Spark's test for an interrupted function is a regular expression that overflows
            # the stack on a long trace; Java prints that on stderr itself.
            silence_stderr(spark)
        for query in active:
            query.stop()
    except (Py4JError, PySparkException, OSError):
        return  # the JVM has gone; nothing runs in it
