"""What only the JVM's session can do: be copied, be that of a thread, say the value of a size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.jvm.attributes import java_class, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASS: Final = "org.apache.spark.sql.classic.SparkSession"


def is_same(one: SparkSession, other: SparkSession) -> bool:
    """Tell whether two objects of PySpark are one session of the JVM."""
    return bool(java_session(one).equals(java_session(other)))


def copied(session: SparkSession) -> SparkSession:
    """Return a session with the same settings and views, and none of its later ones."""
    return type(session)(session.sparkContext, java_session(session).cloneSession())


def make_active(session: SparkSession, thread: str) -> None:
    """Make this the session of Java's thread for the calling one, and give that thread a name."""
    java_class(session, "java.lang.Thread").currentThread().setName(thread)
    java_class(session, _CLASS).setActiveSession(java_session(session))


def ensure_active(session: SparkSession) -> None:
    """Make this the session of Java's thread for the calling one if that has none."""
    kind = java_class(session, _CLASS)
    if kind.getActiveSession().isEmpty():
        kind.setActiveSession(java_session(session))


def broadcast_limit_bytes(session: SparkSession) -> int:
    """Return the estimated size up to which Spark sends a table to all tasks, whatever its unit."""
    return int(java_session(session).sessionState().conf().autoBroadcastJoinThreshold())
