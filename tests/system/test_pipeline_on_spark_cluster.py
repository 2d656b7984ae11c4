"""The same pipeline file, unchanged, on one machine and on a Spark standalone cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once
from tests.system.standalone_spark import standalone_spark

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(2400)]

FILE = """
PIPELINE = {
    "source": {
        "topic": "numbers",
        "bootstrap_servers": "${BOOTSTRAP}",
        "schema": "id BIGINT NOT NULL, name STRING",
    },
    "transform": {"function": "square"},
    "sink": {"target": "${FOLDER}/table"},
    "delivery": {"checkpoint": "${FOLDER}/state", "group": "${GROUP}", "trigger": "available-now"},
    "spark": {
        "master": "${MASTER}",
        "conf": {"spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"},
    },
}


def square(rows):
    import sys

    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    where = F.udf(lambda number: sys.executable, StringType())
    named = rows.select("value.*", "partition", "offset", where("value.id").alias("python"))
    return named.withColumn("square", F.col("id") * F.col("id")).where("id % 3 <> 0")
"""

READ = """
import json, sys
from ottla.pipelines import session

spark = session("read", master="local[1]", conf={"spark.ui.enabled": False})
found = {}
for folder in sys.argv[1:]:
    for table in ("table", "table_rejected"):
        rows = spark.read.format("delta").load(f"{folder}/{table}").orderBy("partition", "offset")
        kept = [name for name in rows.columns if name not in ("timestamp", "key", "headers")]
        found[f"{folder}/{table}"] = [list(map(str, row)) for row in rows.select(kept).collect()]
print(json.dumps(found))
"""
ROWS = 2_000


@pytest.fixture
def bootstrap(tmp_path: Path) -> Any:
    with serve(tmp_path / "broker") as address:
        yield address


@pytest.fixture
def run(tmp_path: Path, bootstrap: str) -> Callable[..., Path]:
    """Run the file to its end on a master; returns the folder of its tables."""
    file = tmp_path / "squares.py"
    file.write_text(FILE)

    def run_on(name: str, master: str) -> Path:
        folder = tmp_path / name
        given = {"MASTER": master, "FOLDER": str(folder), "BOOTSTRAP": bootstrap, "GROUP": name}
        done = subprocess.run(
            [sys.executable, "-m", "ottla", "pipeline", "run", str(file)],
            capture_output=True,
            text=True,
            timeout=900,
            env=os.environ | given,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return folder

    return run_on


def test_a_cluster_writes_the_rows_that_one_machine_writes(
    run: Callable[..., Path],
    bootstrap: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    fetch_jars_once(tmp_path_factory)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(ROWS):
        bad = number % 100 == 50
        value = "no number" if bad else json.dumps({"id": number, "name": f"row {number}"})
        producer.produce("numbers", value)
    assert producer.flush(60) == 0

    alone = run("alone", "local[2]")
    with standalone_spark(tmp_path / "spark") as master:
        cluster = run("cluster", master)
        applications = list((tmp_path / "spark").glob("worker-*/work/app-*/*/stdout"))

    assert len(applications) == 2  # an executor on each worker
    done = subprocess.run(
        [sys.executable, "-c", READ, str(alone), str(cluster)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    good = [number for number in range(ROWS) if number % 100 != 50 and number % 3 != 0]
    assert len(found[f"{alone}/table"]) == len(good)
    assert len(found[f"{alone}/table_rejected"]) == ROWS // 100
    for table in ("table", "table_rejected"):
        assert found[f"{cluster}/{table}"] == found[f"{alone}/{table}"]
