"""A session that pipelines cannot use is refused in one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkAttributeError
from tests.pipelines.environment import START_WITHIN_S

from ottla.pipelines import PipelineError, maintain, report_progress, to_delta, topic
from ottla.pipelines.spark.jvm import required
from ottla.pipelines.spark.jvm.required import require_delta, require_jvm

NEEDED = r"Ottla's pipelines call the JVM .* classic session of PySpark .* SPARK_REMOTE is not set$"


class Hidden:
    """A session of a vendor's Spark that gives no JVM, in PySpark's own words."""

    _jsparkSession = SimpleNamespace()  # noqa: N815 - PySpark's names

    @property
    def _jvm(self) -> Any:
        raise PySparkAttributeError(
            errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": "_jvm"}
        )


class Half:
    _jvm = SimpleNamespace()
    _jsparkSession = None  # noqa: N815


@pytest.mark.parametrize(("session", "name"), [(Hidden(), "_jvm"), (Half(), "_jsparkSession")])
def test_a_session_that_hides_its_jvm(session: Any, name: str) -> None:
    words = rf"^This session \(\S+\.{type(session).__name__}\) does not give its {name}\. {NEEDED}"
    with pytest.raises(PipelineError, match=words):
        require_jvm(session)
    with pytest.raises(PipelineError, match=words):
        topic(session, "flights", bootstrap_servers="localhost:9092")
    with pytest.raises(PipelineError, match=words):
        maintain(session, "/lake/flights")
    with pytest.raises(PipelineError, match=words):
        report_progress(session, bootstrap_servers="localhost:9092", group="g")


@pytest.mark.spark
def test_a_session_as_users_get_it_is_enough(spark: Any) -> None:
    require_jvm(spark)
    require_delta(spark)


@pytest.mark.spark
def test_a_delta_with_other_classes(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(required, "DELTA_LOG", "com.example.delta.DeltaLog")
    words = r"^This Spark 4\S+ does not have the class com\.example\.delta\.DeltaLog\. Tables need"
    rows = topic(spark, "flights", bootstrap_servers="localhost:9092")
    with pytest.raises(PipelineError, match=words):
        to_delta(rows, tmp_path / "t", checkpoint=tmp_path / "c")


# Spark Connect's own server, in a process of its own: a process has one kind of session.
CONNECT = """
import sys
from pyspark.sql import SparkSession
from ottla.pipelines import PipelineError, rejected, to_delta, topic

spark = SparkSession.builder.remote("local[1]").getOrCreate()
rows = spark.readStream.format("rate").load()
flights = {"name": "flights", "bootstrap_servers": "localhost:9092", "schema": "n INT NOT NULL"}
topic(spark, **flights, rejects="keep", unknown_fields="keep", key_schema="bigint")
rejected(spark, **flights)
for start in (
    lambda: topic(spark, **flights),
    lambda: topic(spark, **flights, rejects="keep", starting="table"),
    lambda: rejected(spark, **flights, registry="http://localhost:8081"),
    lambda: to_delta(rows, sys.argv[1] + "/t", checkpoint=sys.argv[1] + "/c"),
):
    try:
        start()
    except PipelineError as error:
        print(error)
spark.stop()
"""


@pytest.mark.spark
def test_a_session_of_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="Spark Connect needs pyarrow")
    pytest.importorskip("grpc_status", reason="Spark Connect needs grpcio-status")
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=4 * START_WITHIN_S,
    )
    place = "Over Spark Connect, as in a declarative pipeline, "
    sink = "This is a session of Spark Connect (pyspark.sql.connect.session.SparkSession). "
    begins = (
        f"{place}nothing counts or keeps the rows that do not parse: topic(..., rejects='keep')",
        f"{place}no table of to_delta tells where a query starts",
        f"{place}a schema registry cannot be used",
        f"{sink}Ottla's pipelines call",
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(begins), done.stderr
    for line, begin in zip(lines, begins, strict=True):
        assert line.startswith(begin)
