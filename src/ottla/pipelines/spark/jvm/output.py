"""stdout and stderr of the JVM, which are those of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.pipelines.spark.jvm.attributes import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def silence_stderr(spark: SparkSession) -> None:
    """Have Java print nothing on stderr any more."""
    nowhere = java_class(spark, "java.io.OutputStream").nullOutputStream()
    printing = java_class(spark, "java.io.PrintStream")(nowhere)
    java_class(spark, "java.lang.System").setErr(printing)


def close_output_at_exit(spark: SparkSession) -> None:
    """Have the JVM close stdout and stderr as the last of its shutdown hooks.

    It writes the class archive after them: a process that reads the program's output through a
    pipe would wait for that.
    """
    system = java_class(spark, "java.lang.System")
    handler = java_class(spark, "java.beans.EventHandler")
    runnable = java_class(spark, "java.lang.Class").forName("java.lang.Runnable")
    hooks = java_class(spark, "org.apache.hadoop.util.ShutdownHookManager").get()
    for stream in (system.out, system.err):
        hooks.addShutdownHook(handler.create(runnable, stream, "close"), 0)
