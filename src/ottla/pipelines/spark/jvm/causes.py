"""The causes of a failure as plain data, read from Python's and the JVM's exceptions.

A failure of Spark arrives as PySpark's copy of a Java exception, which holds one text of up to
700 lines. The Java exception itself knows its class, its error condition and its causes.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.failures.cause import Cause
from ottla.pipelines.spark.jvm.attributes import gateway, is_instance, java_query

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

MAX_CAUSES: Final = 30

# What the thread of a query gets when the query is stopped: Spark interrupts it and cancels its
# jobs.
_INTERRUPTIONS: Final = (
    "java.lang.InterruptedException",
    "java.io.InterruptedIOException",
    "java.nio.channels.ClosedByInterruptException",
)
_CANCELLED: Final = "SPARK_JOB_CANCELLED"
SQLSTATE: Final = "SQLSTATE"


def causes_of(error: BaseException) -> list[Cause]:
    """Return the chain of causes, the outermost first, at most MAX_CAUSES."""
    found: list[Cause] = []
    link: BaseException | None = error
    while link is not None and len(found) < MAX_CAUSES:
        java = _java_exception(link)
        if java is None:
            found.append(Cause(_name(type(link)), _text(link)))
        else:
            found += _java_causes(java, MAX_CAUSES - len(found))
        link = link.__cause__
    return found


def is_interruption(causes: Iterable[Cause]) -> bool:
    """Tell whether a batch failed because its query was stopped, or its jobs were cancelled."""
    return any(cause.kind in _INTERRUPTIONS or cause.condition == _CANCELLED for cause in causes)


def trace_of(error: BaseException) -> str:
    """Return Python's traceback, then the JVM's for each exception of the JVM in the chain."""
    parts = ["".join(traceback.format_exception(error))]
    link: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if link is None:
            break
        if java := _java_exception(link):
            parts.append(_java_trace(java))
        elif text := getattr(link, "_stackTrace", None):
            parts.append(str(text))
        link = link.__cause__
    return "\n".join(parts)


def is_of_jvm(error: BaseException) -> bool:
    """Tell whether an exception of the JVM is behind a Python one."""
    return _java_exception(error) is not None


def _java_exception(error: BaseException) -> Any:
    java = getattr(error, "java_exception", None)
    return java if java is not None else getattr(error, "_origin", None)


def java_kinds(error: BaseException) -> list[str]:
    """Return the class names of the JVM's exception behind a Python one, and of its causes."""
    return [_java_kind(java) for java in _chain(_java_exception(error), MAX_CAUSES)]


def failure_of_query(query: StreamingQuery) -> tuple[list[Cause], str] | None:
    """Return causes and trace of a query of Spark's that failed, None if it has not failed.

    Its own exception only wraps the cause in the plan's text.
    """
    failed = java_query(query).exception()
    if not failed.isDefined():
        return None
    wrapped = failed.get()
    cause = wrapped.getCause()
    return _java_causes(wrapped if cause is None else cause, MAX_CAUSES), _java_trace(wrapped)


def _java_causes(java: Any, limit: int) -> list[Cause]:
    return [
        Cause(_java_kind(one), str(one.getMessage() or ""), _condition(one))
        for one in _chain(java, limit)
    ]


def _java_kind(java: Any) -> str:
    return str(java.getClass().getName())


def _chain(java: Any, limit: int) -> Iterator[Any]:
    """Return an exception of the JVM and its causes."""
    for _ in range(limit):
        if java is None:
            return
        yield java
        java = java.getCause()


def _condition(java: Any) -> str:
    """Return Spark's name for the kind of failure, such as CAST_INVALID_INPUT, "" without one.

    Of a database's exception it is SQL's own code (SQLSTATE).
    """
    if is_instance(java, "java.sql.SQLException"):
        state = java.getSQLState()
        return f"{SQLSTATE} {state}" if state else ""
    if not is_instance(java, "org.apache.spark.SparkThrowable"):
        return ""
    return str(java.getCondition() or "")


def _java_trace(java: Any) -> str:
    traces = getattr(gateway().jvm, "org.apache.commons.lang3.exception.ExceptionUtils")
    return str(traces.getStackTrace(java))


def _name(kind: type) -> str:
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _text(error: BaseException) -> str:
    # PySpark's copies hold the description apart from the plan and the stack.
    return str(getattr(error, "_desc", None) or error)
