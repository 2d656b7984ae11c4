"""Spark's declarative pipelines with `topic` as a source: docs/engines/declarative-pipelines.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyspark
import pytest
from confluent_kafka import Producer
from tests.system.engine_orders import Engine, Orders, running

from components import engine_page

pytestmark = [
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        find_spec("pyspark.pipelines") is None, reason="declarative pipelines need Spark 4.1"
    ),
]

PAGE = "declarative-pipelines.md"
BAD = (b"no order", b'{"id": 1}', b"", b"[]")
ORDERS = 5_000
RUN_WITHIN_S = 300.0


def write_project(folder: Path, bootstrap: str) -> Path:
    """Write the files of the page, with the addresses of this test; return the one of settings."""
    (folder / "tables.py").write_text(engine_page.program(PAGE, "python"))
    text = engine_page.program(PAGE, "yaml")
    for shown, real in (
        ("file:///data/orders/state", (folder / "state").as_uri()),
        ("localhost:9092", bootstrap),
    ):
        assert shown in text
        text = text.replace(shown, real)
    path = folder / "spark-pipeline.yml"
    path.write_text(text)
    return path


def write_settings(folder: Path) -> None:
    """Write the page's defaults, those of the lane, which name the jars, and those of this test."""
    shown = (engine_page.FOLDER / PAGE).read_text().partition("# conf/spark-defaults.conf\n")[2]
    lines = shown.partition("```")[0].splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("spark.jars.packages ")
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(
        "\n".join(
            (
                lines[0],
                (Path(os.environ["SPARK_CONF_DIR"]) / "spark-defaults.conf").read_text(),
                "spark.sql.shuffle.partitions 2",
                "spark.ui.enabled false",
                "spark.driver.host 127.0.0.1\n",
            )
        )
    )


class Project:
    """The process of `spark-pipelines run`, which ends when all tables are up to date."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        folder.mkdir()
        spec = write_project(folder, bootstrap)
        write_settings(folder / "conf")
        self._folder = folder
        self._log = folder / "run.log"
        command = Path(pyspark.__file__).parent / "bin" / "spark-pipelines"
        run = [str(command), "run", "--remote", "local[2]"]
        environment = {
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(folder / "conf"),
        }
        self.engine = Engine(
            # Tables, and what Hive knows of them, lie in the folder in which it runs.
            ["env", "-C", str(folder), *run, "--spec", str(spec)],
            self._log,
            environment,
        )

    def table(self, name: str) -> Path:
        return self._folder / "spark-warehouse" / name

    def batches(self, name: str) -> int:
        """How many of a stream are in the table."""
        log = self.table(name) / "_spark_metadata"
        return sum(path.name.split(".")[0].isdigit() for path in log.glob("*"))

    def finish(self) -> None:
        """Wait until it has ended by itself."""
        try:
            assert self.engine.child.process.wait(RUN_WITHIN_S) == 0, self.engine.child.last_words(
                60
            )
        except subprocess.TimeoutExpired:
            pytest.fail(f"still runs: {self.engine.child.last_words(60)}")


def rows_of(table: Path, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a table, sorted; of a stream those of the files that its log has."""
    from pyarrow import parquet

    files = {path.name for path in table.glob("*.parquet")}
    if (log := table / "_spark_metadata").exists():
        entries = [
            json.loads(line)
            for path in log.glob("[0-9]*")
            for line in path.read_text().splitlines()[1:]
        ]
        files = {unquote(entry["path"]).rpartition("/")[2] for entry in entries}
    found: list[tuple[Any, ...]] = []
    for name in files:
        read = parquet.ParquetFile(table / name).read(list(columns))
        found += zip(*(read.column(column).to_pylist() for column in columns), strict=True)
    return sorted(found)


@pytest.mark.parametrize("count", [1, 3])
def test_each_order_is_in_its_table_once(tmp_path: Path, count: int) -> None:
    with running(count, tmp_path) as brokers:
        orders = Orders(brokers.bootstrap, brokers.replicas)
        orders.send(ORDERS)
        producer = Producer({"bootstrap.servers": brokers.bootstrap})
        for value in BAD:
            producer.produce("orders", value, partition=0)
        assert producer.flush(60) == 0
        project = Project(tmp_path / "project", brokers.bootstrap)
        project.engine.start()
        try:
            project.engine.wait("the first orders", lambda: project.batches("orders") > 1)
            if count == 1:
                project.engine.kill()
                assert 0 < len(rows_of(project.table("orders"), "id")) < ORDERS
                project.engine.start()
                project.finish()
            else:
                with brokers.one_away():
                    project.finish()
            # What comes later, the next run reads.
            orders.send(500)
            project.engine.start()
            project.finish()
        finally:
            project.engine.kill()
    sent = [(order["id"], order["customer"], order["amount"]) for order in orders.sent]
    assert rows_of(project.table("orders"), "id", "customer", "amount") == sent
    found = rows_of(project.table("rejected_orders"), "value", "reason")
    assert [(bytes(value), bool(reason)) for value, reason in found] == [
        (value, True) for value in sorted(BAD)
    ]
    totals = dict(rows_of(project.table("totals"), "customer", "total"))
    assert totals == orders.totals
