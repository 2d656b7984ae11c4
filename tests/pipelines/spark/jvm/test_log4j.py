"""Loggers of the JVM that write to a file."""

from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.spark.jvm.attributes import java_class
from ottla.pipelines.spark.jvm.log4j import Log4j

pytestmark = pytest.mark.spark


def test_a_logger_writes_to_a_file(spark: Any, tmp_path: Path) -> None:
    log4j = Log4j(spark)
    assert log4j.source.endswith((".properties", ".xml"))
    assert not log4j.has("ottla-test")

    log4j.write_to(tmp_path / "a.log", "ottla-test", ["test.of.ottla"], size="10MB", max_files=2)

    assert Log4j(spark).has("ottla-test")
    managers = java_class(spark, "org.apache.logging.log4j.LogManager")
    for name in ("test.of.ottla.Inside", "test.of.others"):
        managers.getLogger(name).error(f"words of {name}")
    managers.getLogger("test.of.ottla").info("no failure")
    (line,) = (tmp_path / "a.log").read_text().splitlines()
    assert line.endswith("ERROR test.of.ottla.Inside: words of test.of.ottla.Inside")
