"""In CI a skipped test is a failure, unless its skip is named here.

A pytest plugin; CI is where the variable CI is set.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
from tests.ci_time import NO_TIME

NAMED_SKIPS = {
    "tests/pipelines/run/test_new_schemas.py": "no spark-avro for this Spark",
    "tests/pipelines/sinks/iceberg/test_to_iceberg.py": "no Iceberg for this Spark",
    "tests/pipelines/source/test_protobuf_spark.py": "no spark-protobuf for this Spark",
    "tests/pipelines/source/test_framed_columns.py": "no spark-avro for this Spark",
    "tests/system/test_pipeline_schema_registry.py": "no spark-avro for this Spark",
    # Each lane has the module or lacks it, and one test for either. The newest has Spark Connect.
    "tests/pipelines/spark/jvm/test_avro_classes.py": "Spark's module for Avro",
    "tests/pipelines/spark/jvm/test_required.py": "Spark Connect needs",
    "tests/system/test_engine_declarative.py": "declarative pipelines need Spark 4.1",
    "tests/pipelines/spark/test_class_archive.py": "no Java on the PATH with an archive of its own",
    "tests/system/test_engine_hadoop.py": "no Java compiler on the PATH",
    "tests/system/test_engine_beam.py": "no Java compiler on the PATH",
    "tests/system/test_kafka_streams.py": "no Java compiler on the PATH",
    "tests/system/test_start.py": "root may read everything",
    "tests/system/test_console_in_browser.py": "no Chromium on the PATH",
    "tests/system/test_console_on_apache_kafka.py": "no Chromium on the PATH",
    "tests/system/test_websocket_page.py": "no Chromium on the PATH",
    "tests/website/pictures/test_console.py": "no Chromium on the PATH",
}
"""Files, and the reason for which their tests may be skipped in CI. The time may end in each."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        _, _, reason = report.longrepr
        named = NAMED_SKIPS.get(item.nodeid.partition("::")[0])
        if NO_TIME not in reason and (named is None or named not in reason):
            report.outcome = "failed"
            report.longrepr = (
                f"{reason}. In CI a skip is a failure: provide what the test needs, or name the"
                " skip in tests/skips.py"
            )
    return report
