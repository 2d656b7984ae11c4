"""The JVM's stdout and stderr, in a process of its own."""

import subprocess
import sys

import pytest
from tests.pipelines.environment import START_WITHIN_S

pytestmark = pytest.mark.spark

PROGRAM = """
from ottla.pipelines import session
from ottla.pipelines.spark.jvm.output import close_output_at_exit, silence_stderr

spark = session("output", master="local[1]", conf={"spark.ui.enabled": False})
stderr = spark._jvm.java.lang.System.err
stderr.println("BEFORE")
silence_stderr(spark)
spark._jvm.java.lang.System.err.println("AFTER")
close_output_at_exit(spark)
spark.stop()
"""


def test_java_prints_nothing_more(spark: object) -> None:
    """`spark` is there so that the jars are. test_start.py shows that the output is closed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=4 * START_WITHIN_S,
    )
    assert done.returncode == 0, done.stderr
    assert "BEFORE" in done.stderr
    assert "AFTER" not in done.stderr
