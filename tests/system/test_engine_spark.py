"""Spark's own source and sink of topics, without Ottla's package: docs/engines/spark.md."""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark
import pytest
from tests.pipelines.jars import fetch_jars_once
from tests.system.engine_orders import Engine, Orders, Written, running

from components import engine_page

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(900)]

SETTINGS = (
    "spark.sql.shuffle.partitions=2",
    "spark.ui.enabled=false",
    "spark.driver.host=127.0.0.1",
    "spark.driver.memory=1g",
)


@pytest.mark.parametrize("count", [1, 3])
def test_orders_are_written_at_least_once_and_counted_once(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, count: int
) -> None:
    fetch_jars_once(tmp_path_factory)
    program = tmp_path / "orders.py"
    program.write_text(engine_page.program("spark.md", "python"))
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--packages", package]
    for setting in SETTINGS:
        submit += ["--conf", setting]
    with running(count, tmp_path) as brokers:
        orders = Orders(brokers.bootstrap, brokers.replicas, "large-orders", "totals")
        engine = Engine(
            [*submit, str(program), brokers.bootstrap, str(tmp_path / "checkpoints")],
            tmp_path / "spark.log",
            {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        )
        large = Written(brokers.bootstrap, "large-orders")
        totals = Written(brokers.bootstrap, "totals")

        def last_totals() -> dict[str, int]:
            return {row["customer"]: row["total"] for row in totals.read()}

        def arrived() -> set[int]:
            return {row["id"] for row in large.read()}

        orders.send(500)
        engine.start()
        try:
            engine.wait("the first orders", lambda: bool(large.read()) and bool(totals.read()))
            brokers.kill_one_of(engine, orders)
            wanted = {order["id"] for order in orders.large}
            engine.wait("all large orders", lambda: arrived() == wanted)
            engine.wait("all totals", lambda: last_totals() == orders.totals)
        finally:
            engine.kill()
            large.close()
            totals.close()
        by_id = {order["id"]: order for order in orders.large}
        assert all(row == by_id[row["id"]] for row in large.values)
