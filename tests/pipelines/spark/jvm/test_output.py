"""The JVM's stderr; test_start.py shows that a program's output is closed."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.pipelines.spark.jvm.output import silence_stderr

pytestmark = pytest.mark.spark


def test_java_prints_nothing_more(spark: Any) -> None:
    java = spark._jvm.java
    before, shown = java.lang.System.err, java.io.ByteArrayOutputStream()
    java.lang.System.setErr(java.io.PrintStream(shown))
    try:
        java.lang.System.err.print("BEFORE")
        silence_stderr(spark)
        java.lang.System.err.print("AFTER")
    finally:
        java.lang.System.setErr(before)
    assert shown.toString() == "BEFORE"
