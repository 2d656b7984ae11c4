"""MapReduce and distcp on what a pipeline wrote into HDFS: docs/engines/hadoop.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from components.hdfs import Hdfs
from confluent_kafka import Consumer, TopicPartition
from tests.pipelines.jars import fetch_jars_once
from tests.system.engine_orders import PARTITIONS, Engine, Orders, running

from components import engine_page, hdfs, ivy, java

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(900)]

SHELL = "org.apache.hadoop.fs.FsShell"
DISTCP = "org.apache.hadoop.tools.DistCp"
# Hadoop's own installation has them; its client's jars have only copies of its own.
LIBRARIES = (
    "commons-cli",
    "commons-lang3",
    "jackson-annotations",
    "jackson-core",
    "jackson-databind",
)


def libraries() -> str:
    jars = Path(pyspark.__file__).parent / "jars"
    return os.pathsep.join(str(next(jars.glob(f"{name}-[0-9]*.jar"))) for name in LIBRARIES)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Hdfs]:
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler on the PATH; install a JDK")
    try:
        hdfs.fetched_distcp()
        started = Hdfs(hdfs.fetched_jars(), tmp_path / "hdfs")
    except (ivy.FetchError, java.NoJavaError) as error:
        pytest.skip(f"Hadoop's jars could not be fetched: {error}")
    try:
        started.start()
        yield started
    finally:
        started.stop()


class Progress:
    """How many records a pipeline has written, by the offsets of its group."""

    def __init__(self, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "orders-into-hdfs"}
        self._consumer = Consumer(settings)

    def written(self) -> int:
        partitions = [TopicPartition("orders", each) for each in range(PARTITIONS)]
        return sum(max(0, each.offset) for each in self._consumer.committed(partitions, 30))

    def close(self) -> None:
        self._consumer.close()


def write_orders(brokers: int, cluster: Hdfs, folder: Path) -> Orders:
    """Have the page's pipeline write orders into HDFS; something is killed in the middle."""
    program = folder / "orders_into_hdfs.py"
    program.write_text(engine_page.program("hadoop.md", "python"))
    with running(brokers, folder) as its_brokers:
        orders = Orders(its_brokers.bootstrap, its_brokers.replicas)
        progress = Progress(its_brokers.bootstrap)
        command = [sys.executable, str(program), its_brokers.bootstrap, cluster.url]
        engine = Engine(command, folder / "pipeline.log")
        orders.send(500)
        engine.start()
        try:
            engine.wait("the first batch", lambda: progress.written() > 0)
            its_brokers.kill_one_of(engine, orders)
            engine.wait("all orders", lambda: progress.written() == len(orders.sent))
        finally:
            engine.kill()
            progress.close()
    return orders


@pytest.mark.parametrize("count", [1, 3])
def test_mapreduce_and_distcp_read_each_order_once(
    cluster: Hdfs, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, count: int
) -> None:
    fetch_jars_once(tmp_path_factory)
    orders = write_orders(count, cluster, tmp_path)
    source, classes = tmp_path / "OrderTotals.java", tmp_path / "classes"
    source.write_text(engine_page.program("hadoop.md", "java"))
    paths = os.pathsep.join((cluster.class_path, libraries()))
    subprocess.run(
        ["javac", "-cp", paths, "-d", str(classes), str(source)], check=True, timeout=120
    )
    more = os.pathsep.join((str(classes), libraries()))
    folder = f"{cluster.url}/orders"
    cluster.run("OrderTotals", folder, "/list", f"{cluster.url}/totals", more=more)
    totals = cluster.run(SHELL, "-cat", "/totals/part-r-*").split()
    assert dict(zip(totals[::2], map(int, totals[1::2]), strict=True)) == orders.totals

    cluster.run(SHELL, "-mkdir", "/copy")
    distcp = os.pathsep.join((f"{hdfs.fetched_distcp()}/*", libraries()))
    cluster.run(DISTCP, "-f", f"{cluster.url}/list", f"{cluster.url}/copy", more=distcp)
    copied = cluster.run(SHELL, "-cat", "/copy/*").splitlines()
    listed = cluster.run(SHELL, "-cat", "/list").split()
    original = cluster.run(SHELL, "-cat", *listed).splitlines()
    assert sorted(copied) == sorted(original)
    assert len(copied) == len(orders.sent)
